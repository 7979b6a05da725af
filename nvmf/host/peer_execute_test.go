package host_test

import (
	"github.com/goiwarp/iwarp/internal/capsule"
)

// execute is what an honest controller does. It is called with p.mu locked.
func (q *peerQueue) execute(c *capsule.Command, data []byte, a *answer) {
	switch {
	case c.Opcode == capsule.OpFabrics:
		q.fabrics(c, data, a)
	case q.id == 0:
		q.administer(c, a)
	default:
		q.p.seen = append(q.p.seen, *c)
		q.access(c, data, a)
	}
}

func (q *peerQueue) fabrics(c *capsule.Command, data []byte, a *answer) {
	p := q.p
	switch c.FabricsType() {
	case capsule.FabricsConnect:
		d, err := capsule.ParseConnectData(data)
		if err != nil {
			p.t.Errorf("Connect: %v", err)
		}
		p.connects = append(p.connects, d)
		a.Result = uint64(p.controller.ControllerID)
	case capsule.FabricsPropertyGet:
		switch access, _ := c.Property(); access.Property {
		case capsule.PropertyCAP:
			a.Result = uint64(p.caps)
		case capsule.PropertyCSTS:
			a.Result = uint64(capsule.StatusReady | capsule.StatusShutdownDone)
		}
	case capsule.FabricsPropertySet:
	}
}

func (q *peerQueue) administer(c *capsule.Command, a *answer) {
	p := q.p
	switch c.Opcode {
	case capsule.OpIdentify:
		a.page = p.page(c.Identify())
	case capsule.OpSetFeatures:
		a.Result = uint64(p.queues)
	case capsule.OpKeepAlive:
		p.seen = append(p.seen, *c)
	default:
		a.Status = capsule.InvalidOpcode | capsule.DNR
	}
}

func (p *peer) page(i capsule.Identify) []byte {
	switch i.Structure {
	case capsule.StructController:
		return p.controller.Append(nil)
	case capsule.StructNamespace:
		return p.namespace.Append(nil)
	case capsule.StructNamespaces:
		if i.NSID == 0 {
			return capsule.AppendList(nil, []uint32{1})
		}
	case capsule.StructDescriptors:
		return capsule.AppendDescriptors(nil, []capsule.Descriptor{{Type: capsule.DescriptorUUID, ID: p.uuid[:]}})
	}
	return make([]byte, capsule.PageLen)
}

func (q *peerQueue) access(c *capsule.Command, data []byte, a *answer) {
	disk, io := q.p.disk, c.IO()
	at := int(io.LBA << diskShift)
	switch c.Opcode {
	case capsule.OpWrite:
		copy(disk[at:], data)
	case capsule.OpRead:
		a.page = append([]byte(nil), disk[at:][:io.Blocks<<diskShift]...)
	case capsule.OpWriteZeroes:
		clear(disk[at:][:io.Blocks<<diskShift])
	case capsule.OpDatasetManagement:
		ranges, err := capsule.ParseRanges(data, c.DatasetManagement().Ranges)
		if err != nil {
			q.p.t.Errorf("Dataset Management: %v", err)
		}
		for _, r := range ranges {
			clear(disk[r.LBA<<diskShift:][:r.Blocks<<diskShift])
		}
	}
}
