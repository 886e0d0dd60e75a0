package memsys

// Calls is how often each call was made on a Net, whatever it answered.
type Calls struct {
	Socket, Bind, Connect, LocalAddr, RemoteAddr, Close int
	Describe, Duplicate, Unblock                        int
	Recv, Send, RecvErrors                              int
	SetOption, GetOption, MemInfo                       int
	BindToDevice, Membership                            int

	Listen, Accept, Read, Write, SendFile, CloseWrite, Info  int
	BindUnix, ConnectUnix, LocalUnix, RemoteUnix, UnlinkUnix int
	SendUnix, RecvUnix, WriteFiles, ReadFiles                int

	Add, Modify, Remove int // what epoll_ctl would be
	WaitNow             int // Wait with a timeout of zero
	WaitBlocking        int // Wait with any other, whether it had to block or not
	Wake                int

	// CloseAdded counts closes of a descriptor that was still in a poller. Linux takes it out then, unless
	// there is a duplicate; the contract of sys.Setup.Close forbids it.
	CloseAdded int
}

// Calls tells the number of calls up to now.
func (n *Net) Calls() Calls {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls
}
