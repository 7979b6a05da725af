//go:build unix

package transfer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestJustCopied has several sources with files of one name: the first is copied, and the second is told not to be,
// also with --force and --resume. What was there before any of them is replaced.
func TestJustCopied(t *testing.T) {
	one, two := randomBytes(5000, 41), randomBytes(5000, 42)
	for name, adjust := range map[string]func(*Client){"force": force,
		"resume": func(c *Client) { force(c); resume(c) }} {
		t.Run(name, func(t *testing.T) {
			r, ctx := newRig(t), testrig.Within(t)
			made(t, one, r.here, "a", "d", "y")
			made(t, two, r.here, "b", "d", "y")
			made(t, two, r.here, "b", "d", "z")
			made(t, randomBytes(9, 43), r.there, "y")
			both := []string{filepath.Join(r.here, "a", "d"), filepath.Join(r.here, "b", "d")}
			r.leaves(second(r.client(adjust).Put(ctx,
				[]string{filepath.Join(both[0], "y"), filepath.Join(both[1], "y")}, "")), message.Twice)
			has(t, one, r.there, "y")
			tree := func(c *Client) { adjust(c); c.Recursive = true }
			sum, err := r.client(tree).Put(ctx, both, "")
			if err == nil || sum.Files != 2 || sum.Left != 1 {
				t.Errorf("%+v, %v", sum, err)
			}
			has(t, one, r.there, "d", "y")
			has(t, two, r.there, "d", "z")
			testrig.Must(t, r.served())
		})
	}
}

// TestJustGot has the same of a server, from which symbolic links come, too.
func TestJustGot(t *testing.T) {
	r, ctx := newRig(t), testrig.Within(t)
	one, two := randomBytes(5000, 44), randomBytes(5000, 45)
	made(t, one, r.there, "a", "d", "y")
	made(t, two, r.there, "b", "d", "y")
	testrig.Must(t, os.Symlink("y", filepath.Join(r.there, "a", "d", "link")))
	testrig.Must(t, os.Symlink("d", filepath.Join(r.there, "b", "d", "link")))
	made(t, randomBytes(9, 46), r.here, "y")
	r.leaves(second(r.client(force).Get(ctx, []string{"a/d/y", "b/d/y"}, r.here)), message.Twice)
	has(t, one, r.here, "y")
	tree := func(c *Client) { force(c); c.Recursive = true }
	sum, err := r.client(tree).Get(ctx, []string{"a/d", "b/d"}, r.here)
	if err == nil || sum.Left != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	has(t, one, r.here, "d", "y")
	if to, err := os.Readlink(filepath.Join(r.here, "d", "link")); to != "y" {
		t.Errorf("a link to %q, %v", to, err)
	}
	testrig.Must(t, r.get("b/d/y", force)) // another command
	has(t, two, r.here, "y")
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }
