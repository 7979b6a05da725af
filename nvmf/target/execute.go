package target

import (
	"github.com/goiwarp/iwarp/internal/capsule"
)

// A handler carries out a command. An error is the end of the connection.
type handler func(*request) (capsule.Status, error)

// adminCommand returns the handler of a command of an Admin Queue, or nil.
func adminCommand(o capsule.Opcode) handler {
	switch o {
	case capsule.OpGetLogPage:
		return (*request).logPage
	case capsule.OpIdentify:
		return (*request).identify
	case capsule.OpAbort:
		return (*request).abort
	case capsule.OpSetFeatures:
		return (*request).setFeature
	case capsule.OpGetFeatures:
		return (*request).getFeature
	case capsule.OpAsyncEvent:
		return (*request).awaitEvent
	case capsule.OpKeepAlive:
		return (*request).nothing
	}
	return nil
}

// ioCommand returns the handler of a command of another queue, or nil: reservations are among those that there are not.
func ioCommand(o capsule.Opcode) handler {
	switch o {
	case capsule.OpFlush:
		return (*request).flush
	case capsule.OpWrite:
		return (*request).writeBlocks
	case capsule.OpRead:
		return (*request).readBlocks
	case capsule.OpWriteZeroes:
		return (*request).writeZeroes
	case capsule.OpDatasetManagement:
		return (*request).datasetManagement
	}
	return nil
}

// execute carries the command out. Its data, if there are any, are in data and out.
func (r *request) execute() (capsule.Status, error) {
	switch {
	case r.cmd.Flags != capsule.FlagSGL:
		return capsule.InvalidField | capsule.DNR, nil
	case r.cmd.Opcode == capsule.OpFabrics:
		return r.fabrics()
	case r.ctrl == nil:
		return capsule.InvalidOpcode | capsule.DNR, nil
	case !r.ctrl.ready() && r.cmd.Opcode != capsule.OpKeepAlive:
		return capsule.SequenceError, nil
	}
	do := ioCommand(r.cmd.Opcode)
	if r.q.qid == 0 {
		do = adminCommand(r.cmd.Opcode)
	}
	if do == nil || r.ctrl.discovery && !ofDiscovery(r.cmd.Opcode) {
		return capsule.InvalidOpcode | capsule.DNR, nil
	}
	return do(r)
}

// ofDiscovery reports whether a discovery controller has a command.
func ofDiscovery(o capsule.Opcode) bool { return o != capsule.OpAbort }

// fabrics carries out a fabrics command.
func (r *request) fabrics() (capsule.Status, error) {
	t := r.cmd.FabricsType()
	switch {
	case t == capsule.FabricsConnect:
		return r.connect()
	case r.ctrl == nil, r.q.qid != 0:
		return capsule.InvalidOpcode | capsule.DNR, nil
	case t == capsule.FabricsPropertyGet:
		return r.propertyGet(), nil
	case t == capsule.FabricsPropertySet:
		return r.propertySet(), nil
	}
	return capsule.InvalidOpcode | capsule.DNR, nil
}

func (r *request) propertyGet() capsule.Status {
	a, ok := r.cmd.Property()
	value, has := r.ctrl.property(a.Property)
	if !ok || !has || a.Long != a.Property.Long() {
		return capsule.InvalidField | capsule.DNR
	}
	r.result = value
	return r.checkData(0)
}

func (r *request) propertySet() capsule.Status {
	a, ok := r.cmd.Property()
	if !ok || a.Long || a.Property != capsule.PropertyCC {
		return capsule.InvalidField | capsule.DNR
	}
	if status := r.checkData(0); status != capsule.Success {
		return status
	}
	r.ctrl.configure(capsule.Configuration(a.Value))
	return capsule.Success
}

// nothing is all that a Keep Alive asks for: that it has come was noticed.
func (r *request) nothing() (capsule.Status, error) { return r.checkData(0), nil }

// abort aborts nothing, which is allowed: commands end by themselves.
func (r *request) abort() (capsule.Status, error) {
	r.result = capsule.AbortNone
	return r.checkData(0), nil
}

// awaitEvent keeps the command for an event.
func (r *request) awaitEvent() (capsule.Status, error) {
	if status := r.checkData(0); status != capsule.Success {
		return status, nil
	}
	if !r.ctrl.await(r.cmd) {
		return capsule.AsyncLimit | capsule.DNR, nil
	}
	r.held = true
	return capsule.Success, nil
}
