package target

import (
	"github.com/goiwarp/iwarp/internal/capsule"
)

// blocks judges where a command is to read or write, and returns the namespace with bytes in it.
func (r *request) blocks(i capsule.IO) (n *namespace, off, length int64, status capsule.Status) {
	n = r.q.t.namespace(i.NSID)
	switch {
	case n == nil:
		return nil, 0, 0, invalidNamespace
	case !capsule.Within(i.LBA, i.Blocks, n.blocks()):
		return nil, 0, 0, capsule.LBAOutOfRange | capsule.DNR
	case n.ReadOnly && r.cmd.Opcode != capsule.OpRead:
		return nil, 0, 0, capsule.WriteProtected | capsule.DNR
	}
	off, length = n.byteRange(i.LBA, i.Blocks)
	return n, off, length, capsule.Success
}

// transfers judges how much a command is to read or write.
func (r *request) transfers(length int64) (int, capsule.Status) {
	if length > int64(r.q.t.cfg.MaxData) {
		return 0, capsule.InvalidField | capsule.DNR
	}
	return int(length), capsule.Success
}

func (r *request) readBlocks() (capsule.Status, error) {
	n, off, length, status := r.blocks(r.cmd.IO())
	if status != capsule.Success {
		return status, nil
	}
	size, status := r.transfers(length)
	if status == capsule.Success {
		status = r.offer(size)
	}
	if status != capsule.Success {
		return status, nil
	}
	room, err := r.buffer(size)
	if err != nil {
		return 0, err
	}
	_, err = n.ReadAt(room, off)
	return r.outcome(err, capsule.ReadError), nil
}

func (r *request) writeBlocks() (capsule.Status, error) {
	i := r.cmd.IO()
	n, off, length, status := r.blocks(i)
	if status != capsule.Success {
		return status, nil
	}
	size, status := r.transfers(length)
	if status != capsule.Success {
		return status, nil
	}
	data, status, err := r.fetch(size)
	if status != capsule.Success || err != nil {
		return status, err
	}
	if _, err = n.WriteAt(data, off); err == nil && i.Control&capsule.ControlFUA != 0 {
		err = n.Flush()
	}
	return r.outcome(err, capsule.WriteFault), nil
}

func (r *request) writeZeroes() (capsule.Status, error) {
	i := r.cmd.IO()
	n, off, length, status := r.blocks(i)
	if status == capsule.Success {
		status = r.checkData(0)
	}
	if status != capsule.Success {
		return status, nil
	}
	err := n.WriteZeroes(off, length, i.Control&capsule.ControlDeallocate != 0)
	if err == nil && i.Control&capsule.ControlFUA != 0 {
		err = n.Flush()
	}
	return r.outcome(err, capsule.WriteFault), nil
}

// flush makes one namespace durable, or all.
func (r *request) flush() (capsule.Status, error) {
	if status := r.checkData(0); status != capsule.Success {
		return status, nil
	}
	if r.cmd.NSID == capsule.AllNamespaces {
		return r.outcome(r.q.t.flush(), capsule.WriteFault), nil
	}
	n := r.q.t.namespace(r.cmd.NSID)
	if n == nil {
		return invalidNamespace, nil
	}
	return r.outcome(n.Flush(), capsule.WriteFault), nil
}

// rangesLen is how many bytes Linux always sends, whatever the number of ranges.
const rangesLen = capsule.MaxRanges * capsule.RangeLen

// datasetManagement discards, if it is asked to.
func (r *request) datasetManagement() (capsule.Status, error) {
	d := r.cmd.DatasetManagement()
	n := r.q.t.namespace(d.NSID)
	switch {
	case n == nil:
		return invalidNamespace, nil
	case n.ReadOnly && d.Deallocate:
		return capsule.WriteProtected | capsule.DNR, nil
	case int64(r.cmd.SGL.Length) < int64(d.Ranges)*capsule.RangeLen, r.cmd.SGL.Length > rangesLen:
		return capsule.InvalidSGLLength | capsule.DNR, nil
	}
	data, status, err := r.fetch(int(r.cmd.SGL.Length))
	if status != capsule.Success || err != nil {
		return status, err
	}
	ranges, err := capsule.ParseRanges(data, d.Ranges)
	if err != nil {
		return capsule.InvalidSGLLength | capsule.DNR, nil
	}
	if status := n.within(ranges); status != capsule.Success || !d.Deallocate {
		return status, nil
	}
	return r.outcome(n.discard(ranges), capsule.WriteFault), nil
}

// outcome is the status of what a Backend has done. Whoever runs the target is told of the first fault on each
// connection; the host, of all.
func (r *request) outcome(err error, otherwise capsule.Status) capsule.Status {
	if err != nil {
		r.q.t.faults.Add(1)
		r.q.faulty.Do(func() {
			r.q.t.cfg.Logger.Warn("disk failed", "peer", r.q.qp.RemoteAddr(), "namespace", r.cmd.NSID, "command",
				r.cmd.Name(false), "error", err)
		})
	}
	return statusOf(err, otherwise)
}
