package iwarp

import (
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// TestSRQRefusal: a QP is told that it holds its share, where there is one, and otherwise that the queue is empty.
func TestSRQRefusal(t *testing.T) {
	for _, c := range []struct {
		perQP, held int
		share       bool
	}{{0, 0, false}, {0, 3, false}, {2, 1, false}, {2, 2, true}} {
		s := srqSource{&SRQ{perQP: c.perQP}, &QP{}}
		for range c.held {
			s.qp.srqHeld.take()
		}
		if got := s.Refusal(); strings.Contains(got, "its share") != c.share || strings.Contains(got, "is empty") == c.share {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestSRQForgetsQP: a queue keeps nothing of a QP that is gone, and a Protection Domain nothing of a queue that could not
// be created.
func TestSRQForgetsQP(t *testing.T) {
	rnic := NewRNIC(RNICConfig{Limits: Limits{SRQs: 1}})
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	srq, err := pd.CreateSRQ(SRQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	qp := &QP{pd: pd}
	if err := srq.attach(qp); err != nil {
		t.Fatal(err)
	}
	srq.taken[qp] = 1
	if srq.detach(qp); len(srq.taken) > 0 || srq.users != 0 {
		t.Errorf("%d QPs are kept, %d use it", len(srq.taken), srq.users)
	}
	if _, err := pd.CreateSRQ(SRQConfig{}); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("one queue more than the limit: %v", err)
	}
	for _, end := range []func() error{srq.Close, pd.Close, rnic.Close} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestSRQRoomAtTheEnd: who polls a completion posts another receive, and there is room for it also while the connection ends, which
// gives all places back at once.
func TestSRQRoomAtTheEnd(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	const depth = 8
	srq, err := pd.CreateSRQ(SRQConfig{Depth: depth})
	if err != nil {
		t.Fatal(err)
	}
	qp := &QP{pd: pd, cfg: QPConfig{SRQ: srq}}
	for range depth {
		if err := srq.PostRecv(&RecvWR{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20_000 {
		qp.srqHeld.next()
		for range depth {
			srq.take(qp, &engine.RecvWork{})
		}
		var ended sync.WaitGroup
		ended.Go(qp.returnSlots)
		for qp.srqHeld.count() > 0 {
			runtime.Gosched()
		}
		for i := range depth {
			qp.polled([]WC{{Op: OpRecv, QP: qp, connection: qp.srqHeld.connection()}})
			if err := srq.PostRecv(&RecvWR{}); err != nil {
				t.Fatalf("after completion %d: %v", i, err)
			}
		}
		ended.Wait()
		if out := srq.out.Load(); out != 0 {
			t.Fatalf("%d receives are taken", out)
		}
	}
}

// TestSRQGivesMemoryBack: a queue that was full and is empty gives its memory back after a while; a queue that is
// closed meanwhile is not kept for that.
func TestSRQGivesMemoryBack(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rnic := NewRNIC(RNICConfig{})
			pd, err := rnic.AllocPD()
			if err != nil {
				t.Fatal(err)
			}
			srq, err := pd.CreateSRQ(SRQConfig{Depth: 64})
			if err != nil {
				t.Fatal(err)
			}
			for range 64 {
				if err := srq.PostRecv(&RecvWR{}); err != nil {
					t.Fatal(err)
				}
			}
			var w engine.RecvWork
			srq.take(new(QP), &w)
			if n, timer := rnic.trimmer.waiting(); n > 0 || timer {
				t.Errorf("%d queues to be trimmed, while the one there is is in use", n)
			}
			for srq.take(new(QP), &w) {
			}
			if n, _ := rnic.trimmer.waiting(); n != 1 {
				t.Errorf("%d queues to be trimmed", n)
			}
			if closed {
				err := srq.Close()
				if n, _ := rnic.trimmer.waiting(); err != nil || n > 0 {
					t.Errorf("%v; %d queues to be trimmed after Close", err, n)
				}
			}
			time.Sleep(3 * trimEvery) // of virtual time
			synctest.Wait()
			due, timer := rnic.trimmer.waiting()
			if n := srq.work.Cap(); n > 1 || timer {
				t.Errorf("memory for %d receives is left, %d queues to be trimmed", n, due)
			}
		})
	}
}

// TestJournalRoom: a journal has room for so many records, and for a few more that are no FPDUs; it counts the others.
func TestJournalRoom(t *testing.T) {
	var j journal
	for range maxJournal + 5 {
		j.add(slog.Record{Level: LevelFrame})
	}
	if len(j.records) != maxJournal || j.dropped != 5 {
		t.Errorf("%d records, %d dropped", len(j.records), j.dropped)
	}
	for range journalRest + 1 {
		j.add(slog.Record{Level: LevelConnection})
	}
	if len(j.records) != maxJournal+journalRest || j.dropped != 6 {
		t.Errorf("%d records with others, %d dropped", len(j.records), j.dropped)
	}
}
