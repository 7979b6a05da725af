package target_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// TestBringUp goes through what Linux does, in its order, from the first Connect to the end.
func TestBringUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a := r.dial(0, 32).connect(15000)
	get := func(p capsule.Property) uint64 {
		return a.want(capsule.Success, capsule.PropertyAccess{Property: p, Long: p.Long()}.Get(), nil).Result
	}
	set := func(c capsule.Configuration) {
		a.want(capsule.Success, capsule.PropertyAccess{Property: capsule.PropertyCC, Value: uint64(c)}.Set(), nil)
	}
	if c := capsule.Capabilities(get(capsule.PropertyCAP)); c.Entries() != DefaultQueueDepth {
		t.Errorf("%d entries", c.Entries())
	}
	set(capsule.ConfigurationEnabled &^ 1)
	if c := get(capsule.PropertyCSTS); c != 0 {
		t.Errorf("status %#x of a controller that is not enabled", c)
	}
	set(capsule.ConfigurationEnabled)
	if get(capsule.PropertyCSTS) != uint64(capsule.StatusReady) ||
		get(capsule.PropertyCC) != uint64(capsule.ConfigurationEnabled) ||
		get(capsule.PropertyVS) != capsule.Version13 {
		t.Error("the controller is not ready")
	}
	i, err := capsule.ParseIdentifyController(a.page(capsule.Identify{Structure: capsule.StructController}))
	must(t, err)
	if i.ControllerID != a.ctrl || i.SubsystemNQN != nqn || i.Namespaces != 1 || i.MaxCommands != DefaultQueueDepth ||
		i.CommandLen != 260 || i.KeepAlive == 0 || i.MaxData != 8 {
		t.Errorf("%+v", i)
	}
	a.want(capsule.Success, capsule.GetLogPage{SGL: a.keyed(0, 512), NSID: capsule.AllNamespaces,
		Page: capsule.LogHealth, Dwords: 128}.Command(), nil)
	granted := a.want(capsule.Success, capsule.Features{Feature: capsule.FeatureQueues,
		SGL: capsule.SGL{Type: capsule.SGLKeyed}, Value: uint32(capsule.NewQueues(2))}.Set(), nil)
	if q := capsule.Queues(granted.Result); q.Submission() != 2 || q.Completion() != 2 {
		t.Errorf("granted %#x", granted.Result)
	}
	one, two := r.io(a, 1, 128), r.io(a, 2, 128)
	a.page(capsule.Identify{Structure: capsule.StructCommandSet})
	ids, err := capsule.ParseList(a.page(capsule.Identify{Structure: capsule.StructNamespaces}))
	must(t, err)
	if len(ids) != 1 || ids[0] != 1 {
		t.Errorf("namespaces %v", ids)
	}
	names, err := capsule.ParseDescriptors(a.page(capsule.Identify{Structure: capsule.StructDescriptors, NSID: 1}))
	must(t, err)
	if len(names) != 2 || names[0].Type != capsule.DescriptorUUID || len(names[0].ID) != 16 {
		t.Errorf("%v", names)
	}
	n, err := capsule.ParseIdentifyNamespace(a.page(capsule.Identify{NSID: 1}))
	must(t, err)
	if n.Size != 8192 || n.BlockShift != 9 || n.Sharing != capsule.NamespaceShared {
		t.Errorf("%+v", n)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 256)
	one.want(capsule.Success, capsule.IO{SGL: one.put(want, 4096), NSID: 1, LBA: 8,
		Blocks: 8}.Command(capsule.OpWrite), nil)
	two.want(capsule.Success, capsule.IO{SGL: two.keyed(0, 4096), NSID: 1, LBA: 8,
		Blocks: 8}.Command(capsule.OpRead), nil)
	same(t, "what was written by one queue", two.get(0, 4096), want)
	set(capsule.ConfigurationEnabled.WithShutdown(capsule.ShutdownNormal))
	if s := capsule.ControllerStatus(get(capsule.PropertyCSTS)); !s.Has(capsule.StatusShutdownDone) {
		t.Errorf("status %#x", s)
	}
}
