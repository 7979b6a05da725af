package target_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

const (
	guardLen   = 64 << 10
	offeredLen = 64 << 10

	hostileAdmin = 1 << 0 // on the Admin Queue
	hostileRaw   = 1 << 1 // the SGL descriptor stays as it is
	hostileShort = 1 << 2 // the capsule is cut
)

// A hostile host sends capsules of any bytes. What it offers lies between guards.
type hostile struct {
	t      testing.TB
	queues [2]*wire // I/O and Admin
	memory []byte
	mr     [2]*iwarp.MR
}

func newHostile(r *rig) *hostile {
	h := &hostile{t: r.t, memory: bytes.Repeat([]byte{0xEE}, 2*guardLen+offeredLen)}
	a := r.admin()
	h.queues = [2]*wire{r.io(a, 1, 8), a}
	for i, w := range h.queues {
		w.lax = true
		mr, err := w.qp.PD().Register(h.memory[guardLen:][:offeredLen], iwarp.RemoteRead|iwarp.RemoteWrite)
		must(r.t, err)
		h.mr[i] = mr
	}
	return h
}

// send sends the 64 bytes of a command after one that says how.
func (h *hostile) send(b []byte) {
	how, data := b[0], bytes.Clone(b[1:1+capsule.CommandLen])
	which := int(how & hostileAdmin)
	w := h.queues[which]
	if how&hostileRaw == 0 {
		at := h.mr[which].Remote(0)
		address := data[24:]
		binary.LittleEndian.PutUint64(address, at.TO+binary.LittleEndian.Uint64(address)%offeredLen)
		binary.LittleEndian.PutUint32(data[35:], at.STag)
	}
	if how&hostileShort != 0 {
		data = data[:how>>3]
	} else if which == 0 {
		data = append(data, make([]byte, int(how>>3)*128)...)
	}
	w.sendBytes(data)
}

// FuzzCapsules has a host send anything. The target goes on for others, and touches nothing that was not offered.
func FuzzCapsules(f *testing.F) {
	add := func(how byte, cs ...capsule.Command) {
		var b []byte
		for _, c := range cs {
			b = c.Append(append(b, how))
		}
		f.Add(b)
	}
	some := capsule.SGL{Type: capsule.SGLKeyedInvalidate, Length: 4096}
	in := capsule.SGL{Type: capsule.SGLOffset, Length: 4096}
	add(0, blocks(0, 8, some).Command(capsule.OpWrite), blocks(0, 8, some).Command(capsule.OpRead))
	add(31<<3|hostileRaw, blocks(0, 8, in).Command(capsule.OpWrite),
		capsule.DatasetManagement{SGL: in, NSID: 1, Ranges: 2, Deallocate: true}.Command())
	add(0, blocks(0, 8, capsule.SGL{Type: capsule.SGLKeyed}).Command(capsule.OpWriteZeroes),
		capsule.NewCommand(capsule.OpFlush, 1))
	add(hostileAdmin, capsule.Identify{SGL: some, Structure: capsule.StructController}.Command(),
		capsule.GetLogPage{SGL: some, Page: capsule.LogEffects, Dwords: 1024}.Command())
	add(hostileAdmin|hostileRaw, capsule.PropertyAccess{Property: capsule.PropertyCC, Value: 0}.Set(),
		capsule.NewCommand(capsule.OpAsyncEvent, 0))
	add(hostileAdmin|hostileRaw, capsule.Features{SGL: capsule.SGL{Type: capsule.SGLKeyed},
		Feature: capsule.FeatureKeepAlive, Value: 1}.Set(), capsule.Connect{SGL: some}.Command())
	add(63<<3&0xF8|hostileShort, blocks(0, 1, some).Command(capsule.OpRead))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newRig(t, func(c *Config) { c.MaxData, c.QueueMemory = 16<<10, 32<<10 })
		h := newHostile(r)
		for range 12 {
			if len(b) <= capsule.CommandLen {
				break
			}
			h.send(b)
			b = b[1+capsule.CommandLen:]
		}
		other := r.dial(0, 32)
		other.host = 2
		other.connect(0).enable()
		io := r.io(other, 1, 8)
		io.want(capsule.Success, blocks(0, 1, io.keyed(0, 512)).Command(capsule.OpRead), nil)
		for i, w := range h.queues {
			_ = w.qp.Abort()
			<-w.over
			must(t, h.mr[i].Deregister())
		}
		guard := bytes.Repeat([]byte{0xEE}, guardLen)
		same(t, "what is before the memory that was offered", h.memory[:guardLen], guard)
		same(t, "what is after it", h.memory[guardLen+offeredLen:], guard)
	})
}
