package perf

import (
	"slices"
	"testing"
)

func TestLastMessage(t *testing.T) {
	for _, test := range []struct{ slot, slots, count, want int }{
		{0, 4, 1, 0},
		{1, 4, 1, -1},
		{3, 4, 4, 3},
		{0, 4, 5, 4},
		{1, 4, 5, 1},
		{3, 4, 12, 11},
		{0, 1, 9, 8},
	} {
		if got := lastMessage(test.slot, test.slots, test.count); got != test.want {
			t.Errorf("slot %d of %d after %d messages: got %d, want %d",
				test.slot, test.slots, test.count, got, test.want)
		}
	}
}

// moved returns both ends' buffers as they are after the job, moved by copies.
func moved(j job) (from, to buffers) {
	from, to = newBuffers(j.Size*j.Slots), newBuffers(j.Size*j.Slots)
	sink := side(!j.Op.Fetches())
	from.fill(j, !sink)
	to.fill(j, sink)
	out, in := newRing(from.tx, j.Size, j.Slots), newRing(to.rx, j.Size, j.Slots)
	for i := range j.Count {
		if j.Op.Fetches() {
			copy(in.message(i), out.message(out.source(i)))
			continue
		}
		copy(in.message(i), out.stamped(&j, i))
	}
	return from, to
}

var ringJobs = []job{
	{Op: Send, Size: 1, Slots: 4, Count: 9, Salt: 1},
	{Op: Write, Size: 64, Slots: 4, Count: 3, Salt: 2},
	{Op: Write, Size: 100, Slots: 7, Count: 50, Salt: 3},
	{Op: Read, Size: 13, Slots: 5, Count: 5, Salt: 4},
	{Op: Read, Size: 64, Slots: 4, Count: 11, Salt: 5},
	{Op: WriteImm, Size: 64, Slots: 4, Count: 11, Salt: 6},
	{Op: Atomic, Size: 8, Slots: 4, Count: 11, Salt: 7},
}

func TestCheckPassesWhatIsRight(t *testing.T) {
	for _, j := range ringJobs {
		_, to := moved(j)
		if wrong := newRing(to.rx, j.Size, j.Slots).check(j); wrong != nil {
			t.Errorf("%+v: %v", j, wrong)
		}
	}
}

func TestCheckFindsEveryWrongByte(t *testing.T) {
	for _, j := range ringJobs {
		_, to := moved(j)
		for at := range to.rx {
			to.rx[at] ^= 0x10
			wrong := newRing(to.rx, j.Size, j.Slots).check(j)
			switch {
			case wrong == nil:
				t.Fatalf("%+v: byte %d of the sink is wrong and was not found", j, at)
			case wrong.Message != lastMessage(at/j.Size, j.Slots, j.Count) || wrong.Offset != at%j.Size:
				t.Fatalf("%+v: byte %d of the sink is wrong: found as %v", j, at, wrong)
			}
			to.rx[at] ^= 0x10
		}
	}
}

func TestCheckFindsAMessageOfAnEarlierLap(t *testing.T) {
	for _, j := range ringJobs {
		if j.Count < 2*j.Slots || j.Size < 2 {
			continue
		}
		before := j
		before.Count -= j.Slots
		_, old := moved(before)
		_, to := moved(j)
		in := newRing(to.rx, j.Size, j.Slots)
		copy(in.message(j.Count-1), newRing(old.rx, j.Size, j.Slots).message(j.Count-1))
		if in.check(j) == nil {
			t.Errorf("%+v: the last message is that of the lap before, and was not found", j)
		}
	}
}

// TestCheckReversed: the result of an Atomic Operation may come from a machine of the other byte order, whatever else
// may not.
func TestCheckReversed(t *testing.T) {
	for _, op := range []Op{Read, Atomic} {
		j := job{Op: op, Size: 8, Slots: 4, Count: 11, Salt: 5}
		_, to := moved(j)
		in := newRing(to.rx, j.Size, j.Slots)
		slices.Reverse(in.message(2))
		if wrong := in.check(j); (wrong == nil) != (op == Atomic) {
			t.Errorf("%v: %v", op, wrong)
		}
	}
}

// TestCheckAnyLap: where Writes may take effect in any order, each slot may hold the message of any lap, and nothing
// else.
func TestCheckAnyLap(t *testing.T) {
	for _, j := range []job{{Op: Write, Size: 64, Slots: 4, Count: 11, AnyLap: true},
		{Op: Write, Size: 1, Slots: 2, Count: 7, AnyLap: true}} {
		_, to := moved(j)
		in := newRing(to.rx, j.Size, j.Slots)
		for m := range j.Count {
			stamp(in.message(m), uint64(m)) // the ones before the last lap, and then those of the last
			if wrong := in.check(j); wrong != nil {
				t.Errorf("%+v: message %d: %v", j, m, wrong)
			}
		}
		stamp(in.message(1), uint64(j.Count+1))
		if in.check(j) == nil {
			t.Errorf("%+v: a slot holds a message that was not sent, and it was not found", j)
		}
		in.message(1)[0] ^= 0x80
		if j.Op = Send; in.check(j) == nil {
			t.Errorf("%+v: Sends have an order", j)
		}
	}
}

func TestCorruptSpoilsOneByte(t *testing.T) {
	for _, j := range ringJobs {
		j.Corrupt = true
		_, to := moved(j)
		wrong := newRing(to.rx, j.Size, j.Slots).check(j)
		if wrong == nil || wrong.Message != j.Count-1 || wrong.Got^wrong.Want != 1 {
			t.Errorf("%+v: found %v, want one bit of message %d", j, wrong, j.Count-1)
		}
	}
}
