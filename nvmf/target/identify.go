package target

import (
	"math/bits"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// What a controller says of itself. A host tells models apart by it, and looks at the first character of the version.
const (
	model    = "iwarp"
	firmware = "1.0"
)

// identify returns a page.
func (r *request) identify() (capsule.Status, error) {
	i := r.cmd.Identify()
	var page []byte
	status := capsule.InvalidField | capsule.DNR
	switch {
	case i.Structure == capsule.StructController:
		page, status = r.ctrl.identify().Append(nil), capsule.Success
	case r.ctrl.discovery || i.CommandSet != 0:
	case i.Structure == capsule.StructNamespace:
		page, status = r.q.t.namespacePage(i.NSID)
	case i.Structure == capsule.StructNamespaces:
		page, status = r.q.t.list(i.NSID)
	case i.Structure == capsule.StructDescriptors:
		page, status = r.q.t.descriptors(i.NSID)
	case i.Structure == capsule.StructCommandSet:
		page, status = make([]byte, capsule.PageLen), capsule.Success
	}
	if status != capsule.Success {
		return status, nil
	}
	return r.give(page)
}

const invalidNamespace = capsule.InvalidNamespace | capsule.DNR

func (t *Target) namespacePage(nsid uint32) ([]byte, capsule.Status) {
	if nsid == 0 || nsid == capsule.AllNamespaces {
		return nil, invalidNamespace
	}
	n := t.namespace(nsid)
	if n == nil {
		return make([]byte, capsule.PageLen), capsule.Success
	}
	return n.identify().Append(nil), capsule.Success
}

// list has the numbers above one.
func (t *Target) list(above uint32) ([]byte, capsule.Status) {
	if above >= capsule.AllNamespaces-1 {
		return nil, invalidNamespace
	}
	var ids []uint32
	for _, n := range t.namespaces {
		if n.id > above {
			ids = append(ids, n.id)
		}
	}
	return capsule.AppendList(nil, ids), capsule.Success
}

func (t *Target) descriptors(nsid uint32) ([]byte, capsule.Status) {
	n := t.namespace(nsid)
	if n == nil {
		return nil, invalidNamespace
	}
	return capsule.AppendDescriptors(nil, n.descriptors()), capsule.Success
}

// identify is what a host is told of the controller.
func (c *controller) identify() *capsule.IdentifyController {
	cfg := &c.t.cfg
	i := &capsule.IdentifyController{
		Serial: c.t.serial, Model: model, Firmware: firmware, ControllerID: c.id, Version: capsule.Version13,
		MaxData:    uint8(bits.TrailingZeros(uint(cfg.MaxData / capsule.MaxDataUnit))),
		Attributes: capsule.KeepAliveByTraffic, AbortLimit: abortLimit - 1, EventLimit: eventLimit - 1,
		LogAttributes: capsule.LogEffectsPage | capsule.LogExtended, KeepAlive: 1,
		QueueEntries: capsule.QueueEntries, MaxCommands: uint16(cfg.QueueDepth),
		SGLs:         capsule.SGLSupported | capsule.SGLKeyedSupported | capsule.SGLOffsetSupported,
		SubsystemNQN: c.host.SubsystemNQN, MaxDescriptors: 1,
		CommandLen:  uint32((capsule.CommandLen + cfg.InCapsule) / capsule.CapsuleUnit),
		ResponseLen: capsule.CompletionLen / capsule.CapsuleUnit,
	}
	if c.discovery {
		i.Type, i.CommandLen, i.SGLs = capsule.ControllerDiscovery, capsule.CommandLen/capsule.CapsuleUnit,
			i.SGLs&^capsule.SGLOffsetSupported
		return i
	}
	i.Type, i.Sharing = capsule.ControllerIO, capsule.MultipleControllers
	i.Namespaces, i.MaxNamespaces = uint32(len(c.t.namespaces)), uint32(len(c.t.namespaces))
	i.Optional, i.WriteCache = capsule.HasDatasets|capsule.HasWriteZeroes, capsule.CachePresent
	return i
}
