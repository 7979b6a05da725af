package iwarp_test

import (
	"context"
	"time"

	"github.com/goiwarp/iwarp"
)

// local are the operations on memory of one's own, each with what ends it.
func (r *opRig) local() []operation {
	return []operation{r.bind(), r.fastRegister(), r.sendInvalidate()}
}

func (r *opRig) bind() operation {
	window, memory := r.ini.mw(iwarp.MWType2), r.ini.mr(opOctets, iwarp.LocalWrite|iwarp.RemoteWrite)
	to := iwarp.Binding{Memory: memory.Slice(0, opOctets), Access: iwarp.RemoteWrite}
	return operation{name: "Bind and LocalInvalidate", octets: opOctets, run: func() {
		to.Key++
		r.done(&iwarp.SendWR{Op: iwarp.OpBindMW, Window: window, Bind: &to})
		r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Window: window})
	}}
}

func (r *opRig) fastRegister() operation {
	mr := r.ini.fast(1, opOctets)
	what := iwarp.Registration{Memory: [][]byte{make([]byte, opOctets)}, Access: iwarp.LocalWrite}
	return operation{name: "FastRegister and LocalInvalidate", octets: opOctets, run: func() {
		what.Key++
		r.done(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Register: &what})
		r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr})
	}}
}

// sendInvalidate has the Responder register memory, which the Initiator's Send invalidates.
func (r *opRig) sendInvalidate() operation {
	mr := r.res.fast(1, opOctets)
	what := iwarp.Registration{Memory: [][]byte{make([]byte, opOctets)}, Access: iwarp.RemoteRead | iwarp.RemoteInvalidate}
	send := r.received(func() {
		r.done(&iwarp.SendWR{SGL: []iwarp.SGE{r.from.Slice(0, opOctets)}, Invalidate: mr.STag()})
	})
	return operation{name: "FastRegister and Send with Invalidate", octets: opOctets, run: func() {
		what.Key++
		r.res.post(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Register: &what})
		r.next(r.res.SendCQ())
		send()
	}}
}

// waits are the ways to wait for a completion, those of messages apart.
func (r *opRig) waits() []operation {
	cq, wc := r.ini.SendCQ(), make([]iwarp.WC, 4)
	poll := func() {
		for cq.Poll(wc) == 0 {
		}
		must(r, wc[0].Err())
	}
	later, cancel := context.WithTimeout(r.ctx, time.Hour)
	r.Cleanup(cancel)
	return []operation{
		{name: "Write, Wait and Poll", octets: opOctets, run: func() {
			r.ini.post(r.write())
			must(r, cq.Wait(r.ctx))
			poll()
		}},
		{name: "Write, Wait with a deadline and Poll", octets: opOctets, run: func() {
			r.ini.post(r.write())
			must(r, cq.Wait(later))
			poll()
		}},
		{name: "Write, Arm, Events and Poll", octets: opOctets, run: func() {
			cq.Arm(false)
			r.ini.post(r.write())
			<-cq.Events()
			poll()
		}},
		{name: "Write with a deadline", octets: opOctets, run: func() {
			_, err := r.ini.Write(later, r.from.Slice(0, opOctets), r.to.Remote(0))
			must(r, err)
		}},
		r.shared(),
	}
}

// shared is a Send to a receive of an SRQ, by a connection of its own; who receives waits for a CompChannel.
func (r *opRig) shared() operation {
	res := newEnd(r, iwarp.RNICConfig{})
	channel, err := res.rnic.NewCompChannel()
	must(r, err)
	cq, err := channel.CreateCQ(64)
	must(r, err)
	srq, err := res.pd.CreateSRQ(iwarp.SRQConfig{Depth: 64})
	must(r, err)
	ini, _ := setup{accept: iwarp.AcceptConfig{PD: res.pd, QP: iwarp.QPConfig{RecvCQ: cq, SRQ: srq}}}.connect(r)

	from, to, wc := ini.mr(opOctets, 0), res.mr(opOctets, iwarp.LocalWrite), make([]iwarp.WC, 4)
	return operation{name: "Send to an SRQ, Arm, CompChannel and Poll", octets: opOctets, run: func() {
		must(r, srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, opOctets)}}))
		cq.Arm(false)
		ini.post(&iwarp.SendWR{SGL: []iwarp.SGE{from.Slice(0, opOctets)}, Unsignaled: true})
		_, err := channel.Next(r.ctx)
		must(r, err)
		for cq.Poll(wc) == 0 {
		}
		must(r, wc[0].Err())
	}}
}
