//go:build unix

package transfer

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// specials make what is neither a file nor a directory, of the kinds that take no privilege.
var specials = map[string]struct {
	make func(at string) error
	kind fs.FileMode
}{
	"pipe":   {func(at string) error { return unix.Mkfifo(at, 0o600) }, fs.ModeNamedPipe},
	"socket": {socketAt, fs.ModeSocket},
	"link to a pipe": {func(at string) error {
		return errorOf(unix.Mkfifo(at+"p", 0o600), os.Symlink(filepath.Base(at)+"p", at))
	}, fs.ModeSymlink},
	"link elsewhere": {func(at string) error { return os.Symlink(os.DevNull, at) }, fs.ModeSymlink},
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// socketAt leaves a socket's name.
func socketAt(at string) error {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}
	ln.SetUnlinkOnClose(false)
	return ln.Close()
}

// TestSpecialsStay has a file replace neither a pipe nor a socket, nor a link that may lead to a device: at both ends,
// also with --force, and also if that came while the file was copied.
func TestSpecialsStay(t *testing.T) {
	for name, special := range specials {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			made(t, randomBytes(3<<20, 5), r.here, "f")
			at := filepath.Join(r.there, "f")
			stays := func() {
				t.Helper()
				if info, err := os.Lstat(at); err != nil || info.Mode().Type() != special.kind {
					t.Fatalf("%v, %v", info, err)
				}
			}
			comes := func() { testrig.Must(t, errorOf(os.RemoveAll(at+"p"), os.RemoveAll(at), special.make(at))) }
			comes()
			for _, adjust := range [][]func(*Client){{}, {force}, {resume}, {resume, force}} {
				r.leaves(r.put("f", adjust...), message.NotRegular)
				stays()
			}
			testrig.Must(t, os.Remove(at))
			made(t, randomBytes(100, 6), r.there, "f")
			r.leaves(r.put("f", force, r.during(comes)), message.NotRegular)
			stays()

			at = filepath.Join(r.here, "g")
			made(t, randomBytes(100, 7), r.there, "g")
			comes()
			r.leaves(r.get("g", force), message.NotRegular)
			stays()
			_, err := r.client(force).Get(testrig.Within(t), []string{"g"}, at)
			r.leaves(err, message.NotRegular)
			stays()
		})
	}
}

// TestSpecialsBelowLinks has a link of a directory that is copied replace no pipe.
func TestSpecialsBelowLinks(t *testing.T) {
	r := newRig(t)
	made(t, nil, r.there, "d", "f")
	testrig.Must(t, os.Symlink("f", filepath.Join(r.there, "d", "l")))
	testrig.Must(t, os.Mkdir(filepath.Join(r.here, "d"), 0o700))
	testrig.Must(t, unix.Mkfifo(filepath.Join(r.here, "d", "l"), 0o600))
	r.leaves(r.get("d", force, func(c *Client) { c.Recursive = true }), message.NotRegular)
	if info, err := os.Lstat(filepath.Join(r.here, "d", "l")); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("%v, %v", info, err)
	}
}

// TestLinksReplaced has --force replace a link, and leave the file that it leads to.
func TestLinksReplaced(t *testing.T) {
	for _, to := range []string{"target", "nothing"} {
		r, old := newRig(t), randomBytes(10, 8)
		made(t, old, r.here, "target")
		made(t, randomBytes(20, 9), r.there, "f")
		testrig.Must(t, os.Symlink(to, filepath.Join(r.here, "f")))
		r.leaves(r.get("f"), message.Exists)
		testrig.Must(t, r.get("f", force))
		has(t, randomBytes(20, 9), r.here, "f")
		has(t, old, r.here, "target")
	}
}
