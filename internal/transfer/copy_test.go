package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestCopies has files of all lengths go both ways, with their modes and times, and nothing else is left.
func TestCopies(t *testing.T) {
	for _, n := range []int{0, 1, 4096, minBlock - 1, minBlock, minBlock + 1, message.MaxBlock, message.MaxBlock + 1,
		(window + 2) * message.MaxBlock} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r, data := newRig(t), randomBytes(n, 1)
			made(t, data, r.here, "f")
			testrig.Must(t, r.put("f"))
			has(t, data, r.there, "f")
			testrig.Must(t, os.Remove(filepath.Join(r.here, "f")))
			testrig.Must(t, r.get("f"))
			has(t, data, r.here, "f")
			testrig.Must(t, r.served())
			lists(t, r.here, "f")
			lists(t, r.there, "f")
		})
	}
}

// TestNetworks has a file go both ways over what there is below, as the command has it.
func TestNetworks(t *testing.T) {
	sctp := new(iwarpsctp.Network)
	for network, below := range map[string]iwarp.SegmentNetwork{"tcp": nil, "sctp": sctp, "sctp:kernel": sctp} {
		t.Run(network, func(t *testing.T) {
			r, data := newRig(t), randomBytes(3<<20+5, 2)
			ln, err := (&iwarp.ListenConfig{Network: below}).Listen(t.Context(), network, "127.0.0.1:0")
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("not on this system: %v", err)
			}
			testrig.Must(t, err)
			defer ln.Close()
			for range 2 {
				r.serving.Go(func() {
					req, err := ln.Accept(testrig.Within(t))
					if err == nil {
						err = r.server.Serve(testrig.Within(t), req)
					}
					testrig.Should(t, err)
				})
			}
			over := func(c *Client) {
				c.Dial = func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
					d.Network = below
					return d.Dial(ctx, network, ln.Addr().String())
				}
			}
			made(t, data, r.here, "f")
			testrig.Must(t, r.put("f", over))
			has(t, data, r.there, "f")
			testrig.Must(t, os.Remove(filepath.Join(r.here, "f")))
			testrig.Must(t, r.get("f", over))
			has(t, data, r.here, "f")
			r.serving.Wait()
			if n := ln.RNIC().Stats(); n.MRs+n.QPs+n.CQs+n.RegisteredBytes != 0 {
				t.Errorf("left: %+v", n)
			}
		})
	}
}

// TestPlaces has files go where cp has them go: into a directory, or by another name.
func TestPlaces(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	one, two := made(t, []byte("1"), r.here, "one"), made(t, []byte("2"), r.here, "two")
	testrig.Must(t, os.Mkdir(filepath.Join(r.there, "d"), 0o700))
	for _, c := range []struct {
		names []string
		to    string
		want  string // the error's beginning
	}{
		{[]string{one}, "other", ""},
		{[]string{one}, "d/other", ""},
		{[]string{one, two}, "d", ""},
		{[]string{one, two}, "", ""},
		{[]string{one, two}, "none", `"none": not copied: there is no such directory`},
		{[]string{one, two}, "one", `"one": not copied: there is no such directory`},
		{[]string{one}, "none/one", `"none/one": not copied: there is no directory to put it in`},
		{[]string{filepath.Join(r.here, "none")}, "", "lstat "},
	} {
		_, err := r.client().Put(ctx, c.names, c.to)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	lists(t, r.there, "one", "two", "other", "d", "d/one", "d/two", "d/other")
	for to, want := range map[string]string{"new": "new", ".": "d/other"} {
		dir := t.TempDir()
		testrig.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
		at := filepath.Join(dir, to)
		if to == "." {
			at = filepath.Join(dir, "d")
		}
		_, err := r.client().Get(ctx, []string{"d/other"}, at)
		testrig.Must(t, err)
		has(t, []byte("1"), dir, want)
	}
	if _, err := r.client().Get(ctx, []string{"d/other"}, filepath.Join(r.here, "none")+"/"); err == nil {
		t.Error("a file was made where a directory was named")
	}
	if _, err := r.client().Get(ctx, []string{"d"}, r.here); err == nil || r.outcome() != message.NotRegular {
		t.Errorf("a directory: %v", err)
	}
	if _, err := r.client().Get(ctx, []string{"nothing"}, r.here); err == nil {
		t.Error("what is not there was copied")
	}
}

// TestNothingOverwritten has files stay that are there, unless it is asked for.
func TestNothingOverwritten(t *testing.T) {
	r := newRig(t)
	mine, other := randomBytes(70000, 3), randomBytes(70000, 4)
	made(t, mine, r.here, "f")
	made(t, other, r.there, "f")
	r.leaves(r.put("f"), message.Exists)
	r.leaves(r.put("f", resume), message.Unlike)
	r.leaves(r.get("f"), message.Exists)
	made(t, other[1:], r.there, "f")
	r.leaves(r.put("f", resume), message.Unlike)
	has(t, other[1:], r.there, "f")
	has(t, mine, r.here, "f")
	testrig.Must(t, r.put("f", resume, force))
	has(t, mine, r.there, "f")
	testrig.Must(t, r.put("f", resume))
	if r.outcome() != message.Already {
		t.Errorf("%v", r.told)
	}
	made(t, other, r.there, "f")
	testrig.Must(t, r.get("f", force))
	has(t, other, r.here, "f")
	testrig.Must(t, os.Mkdir(filepath.Join(r.there, "g"), 0o700))
	made(t, mine, r.here, "g")
	r.leaves(r.put("g", force), message.NotRegular) // there is a directory
	lists(t, r.there, "f", "g")
}

// TestReadOnly has a server that is not to be written to say so.
func TestReadOnly(t *testing.T) {
	r := newRig(t, func(c *ServerConfig) { c.Writable = false })
	made(t, nil, r.here, "f")
	if err := r.put("f"); err == nil || !strings.Contains(err.Error(), "--writable") {
		t.Errorf("%v", err)
	}
	lists(t, r.there)
	testrig.Must(t, r.served())
}

// TestTaken has the name of a file taken while that is copied: it stays whose it is, and what has come stays too.
func TestTaken(t *testing.T) {
	r := newRig(t)
	made(t, randomBytes(3<<20, 5), r.here, "f")
	r.leaves(r.put("f", r.during(func() { made(t, []byte("another's"), r.there, "f") })), message.Exists)
	has(t, []byte("another's"), r.there, "f")
	lists(t, r.there, "f", ".f.iwarp-part")
}

// TestBusy has two copies of one file at a time: the second says that there is a first.
func TestBusy(t *testing.T) {
	r := newRig(t)
	data := randomBytes(3<<20, 6)
	made(t, data, r.here, "f")
	for _, adjust := range [][]func(*Client){{}, {resume}, {force}} {
		testrig.Must(t, r.put("f", force, r.during(func() {
			testrig.Must(t, os.RemoveAll(filepath.Join(r.there, "f"))) // of the last time
			r.leaves(r.put("f", adjust...), message.Busy)
		})))
		has(t, data, r.there, "f")
		lists(t, r.there, "f")
	}
}

// TestPace has as many bytes in a second as are asked for, and no more.
func TestPace(t *testing.T) {
	began := time.Now()
	p := newPace(1 << 20)
	if p.Burst() > 1<<17 || newPace(0) != nil || newPace(1<<40).Burst() != 256<<10 || newPace(1).Burst() != 1 {
		t.Errorf("%d bytes at once", p.Burst())
	}
	if got := p.ReserveN(began, p.Burst()).DelayFrom(began) + p.ReserveN(began,
		1<<17).DelayFrom(began); got != time.Second/8 {
		t.Errorf("a pace of 1 MiB/s has an eighth of it wait for %v", got)
	}
	r, data := newRig(t), randomBytes(300<<10, 7)
	made(t, data, r.here, "f")
	testrig.Must(t, r.put("f", func(c *Client) { c.Rate = 64 << 20 }))
	has(t, data, r.there, "f")
	testrig.Must(t, os.Remove(filepath.Join(r.here, "f")))
	testrig.Must(t, r.get("f", func(c *Client) { c.Rate = 64 << 20 }))
	has(t, data, r.here, "f")
}

// TestTexts says what there is to do.
func TestTexts(t *testing.T) {
	o := &Outcome{"a\nb", message.Full, "disk"}
	if got := o.Error(); got != `"a\nb": no space: make room, and --resume goes on: disk` {
		t.Error(got)
	}
	for there, want := range map[int]string{
		0: "2 not copied, and 3 copied", 1: "2 not copied, 2 copied, and 1 was there already",
		2: "2 not copied, 1 copied, and 2 were there already", 3: "2 not copied, and 3 were there already",
	} {
		sum := Summary{Files: 3, There: there, Left: 2}
		if got := sum.Err().Error(); got != want || (Summary{}).Err() != nil {
			t.Error(got)
		}
	}
	if got := truncate(strings.Repeat("x", 100), 10); got != "xxxxxx ..." || truncate("x", 10) != "x" {
		t.Error(got)
	}
	if got := PartName("d/" + strings.Repeat("x", 250)); len(got) != 2+1+64+len(message.PartSuffix) ||
		PartName("d/x") != "d/.x"+message.PartSuffix {
		t.Error(got)
	}
	// which has the mark, too
	if !bytes.Equal(greeting(), []byte("iWcp\x01")) ||
		!strings.HasPrefix(ulpdata.Describe(greeting()), "like iwarp cp, ") {
		t.Errorf("%q", greeting())
	}
}

// TestCounts: bytes are those of files that the receiver has, and who watches learns of the beginning and the end of
// each.
func TestCounts(t *testing.T) {
	var seen []Event
	tell := teller{watch: func(e Event) { seen = append(seen, e) }}
	good, left := &Outcome{Path: "a"}, &Outcome{Path: "b", Code: message.Denied}
	tell.begun("a", 5)
	tell.ended(good)
	tell.begun("b", 7)
	tell.ended(left)
	if want := []Event{Begun{"a", 5}, good, Begun{"b", 7}, left}; !slices.Equal(seen, want) {
		t.Errorf("told %v, want %v", seen, want)
	}
	sum := Summary{Files: 1, Bytes: 2, Left: 3}
	if sum.Add(tell.sum); sum != (Summary{Files: 2, Bytes: 7, Left: 4}) {
		t.Errorf("%+v", sum)
	}
}
