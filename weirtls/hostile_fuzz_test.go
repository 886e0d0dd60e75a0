package weirtls

import "testing"

// hostileSeeds are for both sides.
func hostileSeeds(f *testing.F) {
	alert := []byte{21, 3, 3, 0, 2, 2, 40}
	for manner := range byte(starts * 2 * 3) {
		f.Add(manner, uint64(manner), []byte{})
		f.Add(manner, uint64(1), alert)
		f.Add(manner, uint64(2), []byte("GET / HTTP/1.1\r\nHost: weir.test\r\n\r\n"))
		f.Add(manner, uint64(3), []byte{22, 3, 1, 255, 255, 1, 0, 255, 255})       // a record that is too long
		f.Add(manner, uint64(4), []byte{23, 3, 3, 0, 0, 23, 3, 3, 0, 0, 20, 3, 3}) // empty ones
		f.Add(manner, uint64(5), append(make([]byte, 150), 1))                     // changes one byte
		f.Add(manner, uint64(6), append(make([]byte, 5), 3, 0, 0, 1))
	}
}

// FuzzServer has a server meet a peer that says anything: it returns, tells once, keeps nothing, and does not spin.
func FuzzServer(f *testing.F) {
	certificates()
	hostileSeeds(f)
	f.Fuzz(func(t *testing.T, manner byte, splits uint64, said []byte) {
		playInMemory(t, hostilePeer{manner, splits, said}.server)
	})
}

// FuzzClient is the same for a client.
func FuzzClient(f *testing.F) {
	certificates()
	hostileSeeds(f)
	f.Fuzz(func(t *testing.T, manner byte, splits uint64, said []byte) {
		playInMemory(t, hostilePeer{manner, splits, said}.client)
	})
}
