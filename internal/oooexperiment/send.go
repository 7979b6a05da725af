package oooexperiment

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/usertcp"
)

// batch is about how many bytes are written at a time.
const batch = 64 << 10

// send sends the bytes of one connection as the Way says, and a FIN.
func (r *run) send(c *usertcp.Conn) error {
	w := mpa.NewWriter(r.way.Markers, true)
	ulpdu := make([]byte, layout.MaxULPDULength)
	arena, fpdus := make([]byte, 0, 2*batch), make([][]byte, 0, 100)
	for number := uint32(0); w.Offset() < uint64(r.cfg.Bytes); {
		arena, fpdus = arena[:0], fpdus[:0]
		for len(arena) < batch && w.Offset() < uint64(r.cfg.Bytes) {
			n := r.ulpdu(&w, c.EMSS(), number)
			fill(ulpdu[:n], number)
			number++
			from := len(arena)
			arena = w.Append(arena, ulpdu[:n])
			fpdus = append(fpdus, arena[from:])
		}
		if err := r.write(c, arena, fpdus); err != nil {
			return err
		}
	}
	return c.CloseWrite()
}

// ulpdu is the size of the next ULPDU. Where FPDUs are not aligned, the first of those that fill a segment is half of
// one, as else TCP, which cuts at the EMSS from the beginning, would happen to align those that follow.
func (r *run) ulpdu(w *mpa.Writer, emss int, number uint32) int {
	switch {
	case r.way.ULPDU > 0:
		return r.way.ULPDU
	case !r.way.Aligned && number == 0:
		emss /= 2
	}
	return layout.Room(w.Offset(), emss, r.way.Markers)
}

func (r *run) write(c *usertcp.Conn, data []byte, fpdus [][]byte) error {
	if !r.way.Aligned {
		_, err := c.Write(data)
		return err
	}
	for len(fpdus) > 0 {
		n, err := c.WriteFPDUs(fpdus)
		if err != nil {
			return err
		}
		for ; n > 0; fpdus = fpdus[1:] {
			n -= len(fpdus[0])
		}
	}
	return nil
}

// fill fills a ULPDU with its number, so that each place of it tells which it is.
func fill(b []byte, number uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], number^uint32(i))
	}
	clear(b[len(b)&^3:])
}

// check holds that a ULPDU is one that was sent: that it reads it is the copy of a placement.
func check(b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("a ULPDU of %d bytes", len(b))
	}
	number := binary.BigEndian.Uint32(b)
	for i := 0; i+4 <= len(b); i += 4 {
		if binary.BigEndian.Uint32(b[i:]) != number^uint32(i) {
			return fmt.Errorf("byte %d of a ULPDU is wrong", i)
		}
	}
	return nil
}
