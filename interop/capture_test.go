package interop_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/gopacket/gopacket/reassembly"
)

// A direction is one of the two of a TCP connection. MPA's initiator is the end
// that opened the connection in every capture here.
type direction int

const (
	fromInitiator direction = iota
	fromResponder
)

func (d direction) String() string { return [...]string{"->", "<-"}[d] }

// peer is the direction of the other end.
func (d direction) peer() direction { return 1 - d }

// A piece is what one segment added to the stream of a direction.
type piece struct {
	dir   direction
	bytes []byte
}

// A conversation is a TCP connection with the octets of both directions, in the
// order in which the capture has them, without what was sent twice.
type conversation struct {
	ports  [2]string // the sending one, by direction
	name   string
	pieces []piece
	lost   int // octets that the capture lacks
	ended  [2]ending
}

// An ending is how a direction's sender has ended it first.
type ending string

const (
	byFIN ending = "FIN"
	byRST ending = "RST"
)

// readCapture returns the TCP connections in a capture.
func readCapture(t testing.TB, path string) []*conversation {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all conversations
	if err := assemble(f, &all); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return all
}

func assemble(pcap io.Reader, into *conversations) error {
	r, err := pcapgo.NewReader(pcap)
	if err != nil {
		return err
	}
	assembler := reassembly.NewAssembler(reassembly.NewStreamPool(into))
	defer assembler.FlushAll()
	for {
		octets, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		packet := gopacket.NewPacket(octets, r.LinkType(), gopacket.NoCopy)
		if tcp, ok := packet.TransportLayer().(*layers.TCP); ok {
			assembler.AssembleWithContext(packet.NetworkLayer().NetworkFlow(), tcp, seenAt(info))
		}
	}
}

// seenAt is what the assembler has to be told of a packet besides its octets.
type seenAt gopacket.CaptureInfo

func (s seenAt) GetCaptureInfo() gopacket.CaptureInfo { return gopacket.CaptureInfo(s) }

// conversations makes one for every connection that the assembler meets.
type conversations []*conversation

func (all *conversations) New(ip, tcp gopacket.Flow, _ *layers.TCP, _ reassembly.AssemblerContext) reassembly.Stream {
	from, to := tcp.Endpoints()
	c := &conversation{
		ports: [2]string{from.String(), to.String()},
		name:  fmt.Sprintf("%v:%v -> %v:%v", ip.Src(), from, ip.Dst(), to),
	}
	*all = append(*all, c)
	return c
}

func (c *conversation) Accept(tcp *layers.TCP, _ gopacket.CaptureInfo, way reassembly.TCPFlowDirection, _ reassembly.Sequence, _ *bool, _ reassembly.AssemblerContext) bool {
	dir := directionOf(way)
	switch {
	case c.ended[dir] != "":
	case tcp.RST:
		c.ended[dir] = byRST
	case tcp.FIN:
		c.ended[dir] = byFIN
	}
	return true
}

func directionOf(way reassembly.TCPFlowDirection) direction {
	if way == reassembly.TCPDirServerToClient {
		return fromResponder
	}
	return fromInitiator
}

func (c *conversation) ReassembledSG(sg reassembly.ScatterGather, _ reassembly.AssemblerContext) {
	way, _, _, skipped := sg.Info()
	if skipped != 0 {
		c.lost++
	}
	n, _ := sg.Lengths()
	if n == 0 {
		return
	}
	c.pieces = append(c.pieces, piece{directionOf(way), slices.Clone(sg.Fetch(n))})
}

// ReassemblyComplete keeps the connection, since the other end may still send.
func (c *conversation) ReassemblyComplete(reassembly.AssemblerContext) bool { return false }
