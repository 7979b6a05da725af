package matrix

import (
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
)

// A Packet is one of SCTP, from the initiator or not.
type Packet struct {
	toResponder bool
	bytes       []byte
}

// Control is a packet with a chunk of a type, and no value.
func Control(toResponder bool, kind chunk.Type) Packet { return packet(toResponder, kind, 0, nil) }

func packet(toResponder bool, kind chunk.Type, flags byte, value []byte) Packet {
	return Packet{toResponder, chunk.Header{}.Packet(chunk.Chunk{Type: kind, Flags: flags, Value: value})}
}

// Init is an INIT, or an INIT ACK, with an Adaptation Layer Indication unless that is 0.
func Init(toResponder bool, indication byte) Packet {
	value := append(make([]byte, 16), 0x80, 8, 0, 6, 1, 2, 0, 0) // and a parameter in front
	if indication != 0 {
		value = append(value, 0xC0, 6, 0, 8, 0, 0, 0, indication)
	}
	kind := chunk.TypeInit
	if !toResponder {
		kind = chunk.TypeInitAck
	}
	return packet(toResponder, kind, 0, value)
}

// Data is a message.
func Data(toResponder bool, flags byte, tsn uint32, stream uint16, ppid uint32, data string) Packet {
	d := chunk.Data{TSN: tsn, Stream: stream, PPID: ppid, Bytes: []byte(data)}
	return Packet{toResponder, chunk.Header{}.Packet(d.Chunk(flags))}
}

// Associations returns how many there are where packets come from as many clients, and how many were passed on.
func Associations(packets ...Packet) (n, passed int) {
	tap := &sctpTap{changed: make(chan struct{})}
	for _, p := range packets {
		tap.pass(new(script.SCTPFlow), p.toResponder, p.bytes, func([]byte) { passed++ })
	}
	return len(tap.all), passed
}

// OnSCTP returns what packets say by themselves.
func OnSCTP(packets []Packet) map[string]string {
	tap := &sctpTap{changed: make(chan struct{})}
	var flow script.SCTPFlow
	for _, p := range packets {
		tap.pass(&flow, p.toResponder, p.bytes, func([]byte) {})
	}
	var f facts
	tap.all[0].addFacts(&f)
	got := make(map[string]string)
	for _, key := range f.keys {
		got[key] = f.value(key)
	}
	return got
}
