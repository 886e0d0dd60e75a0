package weir

import (
	"iter"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets that are 1 µs wide, or 12.5 % where that is more, up to 2 minutes;
// what is longer is in the last bucket. The zero Histogram is empty.
type Histogram struct {
	counts [histogramBuckets]uint64
	sum    time.Duration
}

// Each power of two is cut into eight. Unit is about a microsecond (1,024 ns).
const (
	histogramUnitBits = 10
	histogramSubBits  = 3
	histogramOctaves  = 27
	histogramBuckets  = (histogramOctaves - histogramSubBits + 1) << histogramSubBits
)

// bucketOf is the index of the bucket that d belongs to.
func bucketOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> histogramUnitBits
	shift := max(bits.Len64(units)-1-histogramSubBits, 0)
	return min(shift<<histogramSubBits+int(units>>shift), histogramBuckets-1)
}

// bucketEnd is the least duration above bucket i.
func bucketEnd(i int) time.Duration {
	shift := max(i>>histogramSubBits-1, 0)
	units := i - shift<<histogramSubBits + 1
	return time.Duration(units) << shift << histogramUnitBits
}

// Count is the number of durations.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Sum is all durations together, to the nanosecond; one below zero counts as zero.
func (h *Histogram) Sum() time.Duration { return h.sum }

// add counts what another has counted, too.
func (h *Histogram) add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
}

// Quantile is a duration that at least the part q (0 to 1) of all do not exceed: the end of the bucket in
// which it lies. An empty histogram answers 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	rank := min(max(uint64(math.Ceil(q*float64(total))), 1), total)
	var seen uint64
	for i, c := range h.counts {
		if seen += c; seen >= rank {
			return bucketEnd(i)
		}
	}
	panic("unreachable: the counts add up to total")
}

// Buckets walks the buckets that are not empty, from the shortest: the end of each, and its count.
func (h *Histogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		for i, c := range h.counts {
			if c > 0 && !yield(bucketEnd(i), c) {
				return
			}
		}
	}
}

// recorder is a Histogram that one goroutine writes and any reads.
type recorder struct {
	counts [histogramBuckets]atomic.Uint64
	sum    atomic.Int64
}

func (r *recorder) record(d time.Duration) {
	r.counts[bucketOf(d)].Add(1)
	r.sum.Add(int64(max(d, 0)))
}

func (r *recorder) snapshot() (h Histogram) {
	for i := range r.counts {
		h.counts[i] = r.counts[i].Load()
	}
	h.sum = time.Duration(r.sum.Load())
	return h
}
