package usertcp

// A Link carries the IP packets of one [Stack]: IPv4 and IPv6 packets without any header of a link layer.
type Link interface {
	// MTU returns the octets of the largest packet that the link carries.
	MTU() int
	// Send takes a packet to be sent. It neither waits for the peer nor calls anything of a Stack: it is called with locks of
	// TCP's held. Any number of goroutines call it at once. It keeps nothing of the packet. A packet that cannot be sent is lost.
	Send(packet []byte)
	// Receive calls deliver for each packet that arrives, one after the other, until the link is closed; deliver keeps nothing.
	// The error says why there will be no more packets, and is nil after Close.
	Receive(deliver func(packet []byte)) error
	// Close ends Receive. It may be called more than once.
	Close() error
}
