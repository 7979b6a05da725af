//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestLocalKey: the key of a region without remote rights is of no use to a peer, and what is not the key of any region
// is of no use to anybody.
func TestLocalKey(t *testing.T) {
	for _, tt := range []struct {
		name    string
		access  uint32
		key     uint32 // that is added
		code    rdmap.Code
		refused syscall.Errno // what the owner's own Send gets
	}{
		{"no remote rights", accessLocalWrite, 0, rdmap.CodeDDPSTagNotAssociated, fine},
		{"another key", accessLocalWrite | accessRemoteWrite, 1, rdmap.CodeDDPInvalidSTag, syscall.EINVAL},
		{"another index", accessLocalWrite | accessRemoteWrite, 1 << 8, rdmap.CodeDDPInvalidSTag, syscall.EINVAL},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server, _, _ := connect(t)
			r := server.region("....", tt.access)
			r.key += tt.key
			client.recv(1, client.region("....", accessLocalWrite))
			_, errno := server.d.PostSend(server.qp, &SendWR{SGL: r.sge(), SGEs: 1, Opcode: wrSend})
			want(t, "the owner's Send", errno, tt.refused)
			client.send(2, wrWrite, client.region("evil", 0), r)
			server.event(Disconnected)
			want(t, "memory", string(r.memory), "....")
			var end *iwarp.TerminateError
			if err := server.inner().qp.Err(); !errors.As(err, &end) || end.Code != tt.code {
				t.Errorf("%v, want %v", err, tt.code)
			}
		})
	}
}

// TestKeysRest: the key of a region that is gone, and what differs from it in the lowest bits alone, is not soon that
// of another.
func TestKeysRest(t *testing.T) {
	p := newProgram(t)
	seen := map[uint32]bool{}
	for range 20000 {
		r := p.region("text", accessLocalWrite)
		if index := r.key >> 8; seen[index] {
			t.Fatalf("%#x again", r.key)
		} else {
			seen[index] = true
		}
		must(t, p.d.DeregisterMR(r.mr))
		want(t, "the region by its key", p.d.mrs.find(r.key), nil)
	}
}

// TestManyKeys finds each of many regions by its own key.
func TestManyKeys(t *testing.T) {
	p := newProgram(t)
	all := map[uint32]*MR{}
	for range 3000 {
		r := p.region("text", accessLocalWrite)
		all[r.key] = p.d.mrs.get(r.mr)
	}
	want(t, "different keys", len(all), 3000)
	for key, m := range all {
		if m == nil || p.d.mrs.find(key) != m {
			t.Fatalf("%#x: %v, not %v", key, p.d.mrs.find(key), m)
		}
	}
}
