package weir

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFIFOModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q fifo[*int]
		var model []*int
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if q.len() != len(model) {
					t.Fatalf("length %d, want %d", q.len(), len(model))
				}
				if len(model) > 0 && q.first() != model[0] {
					t.Fatal("another is first")
				}
			},
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 1100).Draw(t, "n") {
					v := new(int)
					q.push(v)
					model = append(model, v)
				}
			},
			"pop": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 1100).Draw(t, "n"), len(model)) {
					if q.pop() != model[0] {
						t.Fatal("out of order")
					}
					model = model[1:]
				}
			},
			"holds nothing that was popped": func(t *rapid.T) {
				held := 0
				for _, v := range q.items[:cap(q.items)] {
					if v != nil {
						held++
					}
				}
				if held != len(model) {
					t.Fatalf("it holds %d values, %d are queued", held, len(model))
				}
			},
		})
	})
}

// A queue that never runs empty does not grow.
func TestFIFOKeepsItsMemory(t *testing.T) {
	t.Parallel()
	for _, queued := range []int{1, 100, 5000} {
		var q fifo[int]
		for i := range queued {
			q.push(i)
		}
		for i := range 200_000 {
			if got := q.pop(); got != i {
				t.Fatalf("got %d, want %d", got, i)
			}
			q.push(i + queued)
		}
		if limit := 4 * (queued + 1024); cap(q.items) > limit {
			t.Errorf("%d values are in room for %d, want at most %d", queued, cap(q.items), limit)
		}
	}
}

func TestFIFOAllocs(t *testing.T) {
	var q fifo[int]
	cycle := func() {
		for i := range 3000 {
			q.push(i)
		}
		for q.len() > 0 {
			q.pop()
		}
	}
	cycle()
	if n := testing.AllocsPerRun(10, cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
