package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// fastRegion is a region with a registration of 8 bytes, and a request for another under the same key.
func fastRegion(p *peer) (r *memory.Region, again func() []byte) {
	p.Helper()
	r, err := p.table.Allocate(testPD, memory.Most{Pieces: 1, Bytes: 8})
	testrig.Must(p, err)
	again = func() []byte {
		buf := []byte("registrd")
		g := memory.Registration{Memory: [][]byte{buf}, Access: memory.LocalWrite}
		r.Announce(&g)
		if f := p.Machine.cfg.Memory.FastRegister(r, &g); f != memory.None {
			p.Fatal(f)
		}
		return buf
	}
	again()
	return r, again
}

// A request that waits does not follow its region into a later registration, under the same STag either: it ends in
// error, and nothing of the other memory is sent, or written to.
func TestRequestsKeepTheirRegistration(t *testing.T) {
	for name, post := range map[string]func(p *peer, r *memory.Region){
		"Send":        func(p *peer, r *memory.Region) { p.post(work(1, OpSend, all(r, 8))) },
		"Read":        func(p *peer, r *memory.Region) { p.post(work(1, OpRead, all(r, 8))) },
		"receive":     func(p *peer, r *memory.Region) { p.receive(1, all(r, 8)) },
		"Read, asked": func(p *peer, r *memory.Region) { p.post(work(1, OpRead, all(r, 8))) },
	} {
		t.Run(name, func(t *testing.T) {
			p := initiator(t)
			r, again := fastRegion(p)
			post(p, r)
			var asked fpdu
			if name == "Read, asked" {
				asked, _ = p.next()
			}
			p.Machine.cfg.Memory.LocalInvalidate(r)
			buf := again()
			switch name {
			case "receive":
				f := send(1, []byte("from one"))
				p.send(f)
				p.wantTerminate(terminate(0x0000))
			case "Read, asked":
				req, _ := rdmap.ParseReadRequest(asked.Payload)
				f := response(req.SinkSTag, req.SinkTO, []byte("from one"))
				p.send(f)
				p.wantTerminate(terminateFor(0x1100, f))
			default:
				p.wantTerminate(terminate(0x0000))
			}
			op := map[string]Op{"Send": OpSend, "receive": OpReceive}
			want := OpRead
			if o, ok := op[name]; ok {
				want = o
			}
			p.completion(failed(1, want, StatusLocalProtection))
			if string(buf) != "registrd" {
				t.Errorf("written to: %q", buf)
			}
		})
	}
}

// A registration whose post is taken back, as one after it was refused, is none: what is posted then means the one
// before, which is still to come.
func TestTakenBackRegistration(t *testing.T) {
	p := initiator(t)
	r, err := p.table.Allocate(testPD, memory.Most{Pieces: 1, Bytes: 8})
	testrig.Must(t, err)
	register := func(id uint64, text string) SendWork {
		return SendWork{ID: id, Op: OpFastRegister, Fence: true,
			Register: &Register{r, memory.Registration{Memory: [][]byte{[]byte(text)}}}}
	}
	p.post(work(1, OpSend)) // for which the registration waits
	p.post(register(2, "expected"))
	from := p.Machine.Posted()
	p.post(register(3, "mistaken"))
	p.Machine.TakeBackSends(from)
	p.post(work(4, OpSend, all(r, 8)))
	p.next()
	if sent, _ := p.next(); string(sent.Payload) != "expected" {
		t.Errorf("sent %q", sent.Payload)
	}
	p.completion(success(1, OpSend, 0), success(2, OpFastRegister, 0), success(4, OpSend, 8))
}
