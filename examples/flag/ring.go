package main

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// A slot holds one record. Its last word is the flag, the number of the record that is there: the first is 1.
//
//	 0       4                           56      64
//	+-------+---------------------------+--------+
//	| length| text                      |  flag  |
//	+-------+---------------------------+--------+
const (
	slots   = 8
	slotLen = 64
	textLen = slotLen - 4 - 8
)

// end as a number of a record says that there are no more.
const end = ^uint64(0)

var errTooLong = errors.New("a record has no room for so long a text")

// words returns memory that begins at a multiple of eight, as flags must, and the same as bytes.
func words(n int) ([]uint64, []byte) {
	w := make([]uint64, n)
	return w, unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n)
}

// poll waits for a flag. The load is atomic: so the compiler reads memory each time, and what was placed before the flag is
// seen when the flag is. A program that has a processor to spare polls like this, and others wait for a message.
func poll(ctx context.Context, qp *iwarp.QP, flag *uint64, done func(uint64) bool) (uint64, error) {
	for {
		if v := atomic.LoadUint64(flag); done(v) {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-qp.Done():
			if v := atomic.LoadUint64(flag); done(v) { // it was placed before the end
				return v, nil
			}
			return 0, qp.Err()
		default:
			runtime.Gosched()
		}
	}
}

// A flag is a number in the byte order of the machine that polls it. These two programs are the same on both ends, and the
// flags are told in the private data in the order of the machine, so that an end of another order finds that out at once.
const order = 0x0102030405060708

// advertise is the private data by which an end tells the other where it may write.
func advertise(mr *iwarp.MR) []byte {
	b, _ := mr.Remote(0).AppendBinary(nil)
	return binary.NativeEndian.AppendUint64(b, order)
}

// advertised reads that.
func advertised(private []byte) (r iwarp.Remote, err error) {
	if len(private) != iwarp.RemoteLen+8 || binary.NativeEndian.Uint64(private[iwarp.RemoteLen:]) != order {
		return r, errors.New("the peer is no program like this, or its machine has another byte order")
	}
	return r, r.UnmarshalBinary(private[:iwarp.RemoteLen])
}

// receive accepts one writer, and hands over its records until it says that there are no more.
func receive(ctx context.Context, ln *iwarp.Listener, take func(text string)) error {
	req, err := ln.Accept(ctx)
	if err != nil {
		return err
	}
	credit, err := advertised(req.PrivateData())
	if err != nil {
		_ = req.Close()
		return err
	}
	pd, err := ln.RNIC().AllocPD()
	if err != nil {
		return err
	}
	ring, data := words(slots * slotLen / 8)
	mr, err := pd.Register(data, iwarp.RemoteWrite)
	if err != nil {
		return err
	}
	qp, err := req.Accept(ctx, iwarp.AcceptConfig{PD: pd, MPA: mpa.Answer{PrivateData: advertise(mr)}})
	if err != nil {
		return err
	}
	defer qp.Close()
	for next := uint64(1); ; next++ {
		at := int((next-1)%slots) * slotLen
		flag := &ring[at/8+slotLen/8-1]
		v, err := poll(ctx, qp, flag, func(v uint64) bool { return v == next || v == end })
		if err != nil || v == end {
			return err
		}
		text := data[at+4 : at+4+min(int(binary.BigEndian.Uint32(data[at:])), textLen)]
		take(string(text)) // the writer leaves the slot alone until it is told
		if err := writeWord(qp, credit, next); err != nil {
			return err
		}
	}
}

// writeWord writes a number into a word of the peer's. Inline data are copied, so that nobody waits for the completion.
func writeWord(qp *iwarp.QP, word iwarp.Remote, n uint64) error {
	return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: binary.NativeEndian.AppendUint64(nil, n), Remote: word, Unsignaled: true})
}

// write connects, and writes a record for each text.
func write(ctx context.Context, addr string, texts []string) error {
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	if err != nil {
		return err
	}
	defer pd.RNIC().Close()
	read, data := words(1) // how many records the reader has read
	mr, err := pd.Register(data, iwarp.RemoteWrite)
	if err != nil {
		return err
	}
	d := iwarp.Dialer{PD: pd, MPA: mpa.Offer{PrivateData: advertise(mr)}}
	qp, err := d.Dial(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer qp.Close()
	ring, err := advertised(qp.Negotiated().PrivateData)
	if err != nil {
		return err
	}
	for i, text := range texts {
		if err := writeRecord(ctx, qp, ring, &read[0], uint64(i+1), text); err != nil {
			return err
		}
	}
	return finish(ctx, qp, ring, &read[0], uint64(len(texts)))
}

// writeRecord waits until the slot is free, and fills it by one Write, of which the flag is the end.
func writeRecord(ctx context.Context, qp *iwarp.QP, ring iwarp.Remote, read *uint64, number uint64, text string) error {
	if len(text) > textLen {
		return errTooLong
	}
	if _, err := poll(ctx, qp, read, func(v uint64) bool { return v+slots >= number }); err != nil {
		return err
	}
	slot := binary.BigEndian.AppendUint32(make([]byte, 0, slotLen), uint32(len(text)))
	slot = append(append(slot, text...), make([]byte, textLen-len(text))...)
	slot = binary.NativeEndian.AppendUint64(slot, number)
	to := ring.Add(int((number-1)%slots) * slotLen)
	return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: slot, Remote: to, Unsignaled: true})
}

// finish says that there are no more, when the last record was read, and closes.
func finish(ctx context.Context, qp *iwarp.QP, ring iwarp.Remote, read *uint64, records uint64) error {
	if _, err := poll(ctx, qp, read, func(v uint64) bool { return v == records }); err != nil {
		return err
	}
	flag := ring.Add(int(records%slots)*slotLen + slotLen - 8)
	if err := writeWord(qp, flag, end); err != nil {
		return err
	}
	return qp.Close()
}
