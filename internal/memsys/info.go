package memsys

import "github.com/weirnet/weir/internal/sys"

// initialWindow is TCP_INIT_CWND, in segments: nothing here makes it grow.
const initialWindow = 10

// Info tells what memory can know: no time goes by here, and nothing is lost.
func (k kernel) Info(fd int) (sys.TCPInfo, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Info++
	s, err := k.n.socketOf(fd, sys.TCP)
	if err != nil {
		return sys.TCPInfo{}, err
	}
	st := s.stream
	info := sys.TCPInfo{BytesReceived: uint64(st.in.total - st.in.count + st.in.received)}
	if st.state == connected {
		info.SendMSS, info.CongestionWindow = s.segmentBytes(), initialWindow
	}
	if p := s.pipeOut(); p != nil {
		info.NotSentBytes = p.count - p.received
	}
	info.BytesAcked = uint64(st.written - info.NotSentBytes)
	return info, nil
}

// segmentOptions is what the headers of IPv4 and TCP take of a packet, timestamps included.
const segmentOptions = 52

// segmentBytes is what TCP_MAXSEG of a connection tells.
func (s *socket) segmentBytes() int {
	most := s.net.mtuFor(s.peer.Addr()) - segmentOptions
	if own := s.options[sys.MaxSegment]; own != 0 {
		most = min(most, own-12) // the timestamps
	}
	return most
}
