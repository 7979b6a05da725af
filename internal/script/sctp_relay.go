package script

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// An SCTPRelay passes the packets of SCTP in UDP on between those that dial it and one server, each of which takes it
// for the other. Where the SCTP port is that of UDP, the relay puts in its own.
type SCTPRelay struct {
	pc    *net.UDPConn
	to    netip.AddrPort
	pass  Pass
	tasks sync.WaitGroup

	mu     sync.Mutex
	flows  map[netip.AddrPort]*SCTPFlow
	closed bool
}

// A Pass gets every packet, and calls deliver for what is to arrive, then or later, from any goroutine. The packet is
// its own.
type Pass func(f *SCTPFlow, toServer bool, packet []byte, deliver func(packet []byte))

// An SCTPFlow is what passes between one that has dialed and the server.
type SCTPFlow struct {
	relay  *SCTPRelay
	client netip.AddrPort
	out    *net.UDPConn // what the server sees
}

// Client returns the address by which the server knows the one that has dialed.
func (f *SCTPFlow) Client() net.Addr { return f.out.LocalAddr() }

// RelaySCTP stands in front of a server. A nil pass passes on everything as it comes.
func RelaySCTP(to string, pass Pass) (*SCTPRelay, error) {
	server, err := netip.ParseAddrPort(to)
	if err != nil {
		return nil, err
	}
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	_ = pc.SetReadBuffer(relayBuffer)
	if pass == nil {
		pass = func(_ *SCTPFlow, _ bool, packet []byte, deliver func([]byte)) { deliver(packet) }
	}
	r := &SCTPRelay{pc: pc, to: server, pass: pass, flows: make(map[netip.AddrPort]*SCTPFlow)}
	r.tasks.Go(r.fromClients)
	return r, nil
}

// relayBuffer is how much a socket of a relay holds, in bytes, where the system allows it.
const relayBuffer = 4 << 20

// Addr is where to dial, on this host.
func (r *SCTPRelay) Addr() string { return r.pc.LocalAddr().String() }

// Close passes nothing on any more.
func (r *SCTPRelay) Close() error {
	r.mu.Lock()
	r.closed = true
	for _, f := range r.flows {
		_ = f.out.Close()
	}
	r.mu.Unlock()
	err := r.pc.Close()
	r.tasks.Wait()
	return err
}

func (r *SCTPRelay) fromClients() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := r.pc.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		if f := r.flow(from); f != nil && n >= chunk.HeaderLen {
			r.pass(f, true, append([]byte(nil), b[:n]...), f.toServer)
		}
	}
}

// flow is that of a client, or nil if there can be none.
func (r *SCTPRelay) flow(client netip.AddrPort) *SCTPFlow {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.flows[client]; f != nil || r.closed {
		return f
	}
	out, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.to))
	if err != nil {
		return nil
	}
	_ = out.SetReadBuffer(relayBuffer)
	f := &SCTPFlow{relay: r, client: client, out: out}
	r.flows[client] = f
	r.tasks.Go(f.fromServer)
	return f
}

func (f *SCTPFlow) fromServer() {
	b := make([]byte, 1<<16)
	for {
		n, err := f.out.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if n >= chunk.HeaderLen {
			f.relay.pass(f, false, append([]byte(nil), b[:n]...), f.toClient)
		}
	}
}

func (f *SCTPFlow) toServer(b []byte) {
	binary.BigEndian.PutUint16(b[2:], f.relay.to.Port())
	_, _ = f.out.Write(chunk.Seal(b))
}

func (f *SCTPFlow) toClient(b []byte) {
	binary.BigEndian.PutUint16(b, f.relay.pc.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	_, _ = f.relay.pc.WriteToUDPAddrPort(chunk.Seal(b), f.client)
}
