package transfer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestResumeForce has --resume and --force together replace a file of the same size and time with other contents,
// wherever it differs, and leave one that is the same.
func TestResumeForce(t *testing.T) {
	data := randomBytes((window+3)*message.MaxBlock+77, 31)
	for name, at := range map[string]int{"first": 0, "second": message.MaxBlock + 5,
		"late": (window + 1) * message.MaxBlock, "last": len(data) - 1} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			other := bytes.Clone(data)
			other[at] ^= 1
			made(t, data, r.here, "f")
			made(t, other, r.there, "f")
			testrig.Must(t, r.put("f", resume, force))
			has(t, data, r.there, "f")
			lists(t, r.there, "f")
			made(t, other, r.here, "f")
			testrig.Must(t, r.get("f", resume, force))
			has(t, data, r.here, "f")
			before, err := os.Stat(filepath.Join(r.here, "f"))
			testrig.Must(t, err)
			testrig.Must(t, r.get("f", resume, force))
			if after, err := os.Stat(filepath.Join(r.here, "f")); err != nil || !os.SameFile(before, after) ||
				r.outcome() != message.Already {
				t.Errorf("a file that was the same was replaced: %v, %v", r.outcome(), err)
			}
			lists(t, r.here, "f")
		})
	}
}

// TestResumeForceAfterCut has the replacement go on that was cut, with what it has left, of which a part is of neither
// file.
func TestResumeForceAfterCut(t *testing.T) {
	r, data := newRig(t), randomBytes((window+3)*message.MaxBlock, 32)
	other := bytes.Clone(data)
	other[message.MaxBlock] ^= 1
	made(t, data, r.here, "f")
	made(t, other, r.there, "f")
	left := bytes.Clone(data[:(window+2)*message.MaxBlock])
	left[window*message.MaxBlock] ^= 1
	made(t, append(left, data...), r.there, ".f.iwarp-part")
	testrig.Must(t, r.put("f", resume, force))
	has(t, data, r.there, "f")
	lists(t, r.there, "f")
}

// TestReplacedChanges has somebody write to the file that is to be replaced, in block 5, when the sender has found that
// to be the same: the copy is told to have failed, and goes on later.
func TestReplacedChanges(t *testing.T) {
	const changes = 5
	for name, differs := range map[string]int{"before the difference": 7, "after it": 3} {
		t.Run(name, func(t *testing.T) {
			r, data := newRig(t), randomBytes((window+3)*message.MaxBlock, 33)
			other := bytes.Clone(data)
			other[differs*message.MaxBlock] ^= 1
			made(t, data, r.here, "f")
			old, blocks := made(t, other, r.there, "f"), 0
			r.leaves(r.put("f", resume, force, func(c *Client) {
				watch := c.Watch
				c.Watch = func(e Event) {
					watch(e)
					if _, moved := e.(Moved); moved {
						if blocks == changes {
							other[changes*message.MaxBlock] ^= 1
							made(t, other, old)
						}
						blocks++
					}
				}
			}), message.Changed)
			testrig.Must(t, r.put("f", resume, force))
			has(t, data, r.there, "f")
			lists(t, r.there, "f")
		})
	}
}
