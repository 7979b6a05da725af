package rping

import (
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping/message"
)

// An Event is what a client or server tells its watcher. It is one of the types below.
type Event interface{ isEvent() }

type (
	// PrivateData is that of the peer's startup frame. There is none to tell of where it
	// is empty.
	PrivateData []byte
	// Connected says that a connection is up.
	Connected struct {
		Remote     net.Addr
		Negotiated iwarp.Negotiated
	}
	// Sent is an advert that goes to the peer.
	Sent message.Advert
	// Received is an advert that the server has received.
	Received message.Advert
	// Completed is an operation that is complete.
	Completed iwarp.Op
	// Pinged has the text that the server has read, or that the client has got back.
	Pinged struct {
		Server bool
		Text   []byte        // valid during the call
		Size   int           // bytes of the buffer; of a client only
		Time   time.Duration // of the whole ping; of a client only
	}
	// Disconnected says that the peer has closed the connection in order.
	Disconnected struct{ Server bool }
	// ClientFailed is why a persistent server has lost a client.
	ClientFailed struct {
		Remote net.Addr
		Err    error
	}
)

func (PrivateData) isEvent()  {}
func (Connected) isEvent()    {}
func (Sent) isEvent()         {}
func (Received) isEvent()     {}
func (Completed) isEvent()    {}
func (Pinged) isEvent()       {}
func (Disconnected) isEvent() {}
func (ClientFailed) isEvent() {}
