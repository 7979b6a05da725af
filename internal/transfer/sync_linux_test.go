package transfer

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestNameOfTheDirectory copies a directory into one that is made for it: that one's name is on disk, too, and so the
// directory that has the name was opened after it had come to be there, which nothing but a sync does.
func TestNameOfTheDirectory(t *testing.T) {
	recursive := func(c *Client) { c.Recursive = true }
	t.Run("put", func(t *testing.T) {
		r := newRig(t)
		made(t, nil, r.here, "d", "f")
		opened := watched(t, r.there)
		_, err := r.client(recursive).Put(testrig.Within(t), []string{filepath.Join(r.here, "d")}, "new")
		testrig.Must(t, err)
		opened("new")
		lists(t, r.there, "new", "new/d", "new/d/f")
	})
	t.Run("get", func(t *testing.T) {
		r := newRig(t)
		made(t, nil, r.there, "d", "f")
		opened := watched(t, r.here)
		_, err := r.client(recursive).Get(testrig.Within(t), []string{"d"}, filepath.Join(r.here, "new"))
		testrig.Must(t, err)
		opened("new")
		lists(t, r.here, "new", "new/d", "new/d/f")
	})
}

// TestNoNames has a file system that has no names on disk, and takes no files, refuse a file, and nothing be told of a
// cut.
func TestNoNames(t *testing.T) {
	r := newRig(t)
	made(t, nil, r.there, "f")
	_, err := r.client().Get(testrig.Within(t), []string{"f"}, "/proc/iwarp-test")
	if want := (&IncompleteError{Summary{Left: 1}}).Error(); err == nil || err.Error() != want {
		t.Errorf("%v, and not %s", err, want)
	}
	if code := r.outcome(); code != message.Failed && code != message.Denied { // the latter for who is not root
		t.Errorf("%v", r.told)
	}
	testrig.Must(t, r.served())
}

// TestModeBeforeMark has a directory that was made for a copy get its mode and time before the mark goes by which
// --resume knows that it is to have them, and after that again, as the time is another then.
func TestModeBeforeMark(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	madeDir(t, 0o750, r.here, "d")
	plays(ctx, r.playClient(ctx), beginPut, message.Offer{Kind: message.Directory, Path: "d"})
	r.serving.Wait()
	seen := watch(t, filepath.Join(r.there, "d"), unix.IN_ATTRIB|unix.IN_MOVED_FROM)
	testrig.Must(t, r.put("d", recursive, resume))
	events := seen()
	goes := slices.IndexFunc(events, func(e event) bool {
		return e.mask&unix.IN_MOVED_FROM != 0 &&
			e.name == unfinished
	})
	dressed := func(e event) bool { return e.mask&unix.IN_ATTRIB != 0 && e.name == "" }
	if goes < 0 || !slices.ContainsFunc(events[:goes], dressed) || !slices.ContainsFunc(events[goes:], dressed) {
		t.Errorf("%v", events)
	}
	if at := isDir(t, 0o750, r.there, "d"); !at.Equal(long) {
		t.Errorf("d has the time %v", at)
	}
}

// watched returns what wants a directory to have been opened after a name was made in it.
func watched(t *testing.T, dir string) func(name string) {
	t.Helper()
	seen := watch(t, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_OPEN)
	return func(name string) {
		t.Helper()
		events := seen()
		is := slices.IndexFunc(events, func(e event) bool {
			return e.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 &&
				e.name == name
		})
		if is < 0 || !slices.ContainsFunc(events[is:],
			func(e event) bool { return e.mask&unix.IN_OPEN != 0 && e.name == "" }) {
			t.Errorf("%s was not opened after %s was made: %v", dir, name, events)
		}
	}
}

// watch returns what tells what has happened in a directory.
func watch(t *testing.T, dir string, mask uint32) func() []event {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	testrig.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, dir, mask)
	testrig.Must(t, err)
	return func() (events []event) {
		for {
			buf := make([]byte, 1<<16)
			n, err := unix.Read(fd, buf)
			if err != nil {
				return events
			}
			events = append(events, eventsOf(buf[:n])...)
		}
	}
}

// An event is what the system tells of a directory, or of a name in it.
type event struct {
	mask uint32
	name string
}

func eventsOf(b []byte) (all []event) {
	for len(b) >= unix.SizeofInotifyEvent {
		length := binary.NativeEndian.Uint32(b[12:])
		name := b[unix.SizeofInotifyEvent:][:length]
		all = append(all, event{binary.NativeEndian.Uint32(b[4:]), unix.ByteSliceToString(name)})
		b = b[unix.SizeofInotifyEvent+length:]
	}
	return all
}
