package ulp

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/internal/wording"
)

// A nvme is a queue of NVMe over RDMA, whose host is the end that connects.
type nvme struct {
	admin, sure bool // which of the two queues it is, if that is known
	asked       memo[uint16, nvmeCommand]
	memory      memory
}

// A nvmeCommand is one without a completion.
type nvmeCommand struct {
	name  string
	probe bool // by which hosts find out what there is: it may fail
	n     int  // of the message
}

func beginNVMe(private [2]any, _ [2][]byte) (protocol, bool) {
	p := &nvme{}
	if q, ok := private[0].(ulpdata.NVMeRequest); ok {
		p.admin, p.sure = q.QID == 0, true
	}
	return p, p.sure
}

func (p *nvme) access(end int, a *Access) (line, int) { return p.memory.access(end, a) }

func (p *nvme) size() int { return costRequest*p.asked.len() + p.memory.size() }

func (p *nvme) send(end int, m *Message) (line, int) {
	if end == 0 {
		return p.command(m)
	}
	return p.completion(m)
}

// command reads a command capsule.
func (p *nvme) command(m *Message) (line, int) {
	c, err := capsule.ParseCommand(m.Data)
	if err != nil || c.Flags != capsule.FlagSGL || c.SGL.Type != capsule.SGLKeyed &&
		c.SGL.Type != capsule.SGLKeyedInvalidate && c.SGL.Type != capsule.SGLOffset {
		return line{}, against
	}
	name := p.named(&c)
	p.asked.put(c.ID, nvmeCommand{name, p.probes(&c), m.n}, maxRequests)
	l := line{text: fmt.Sprintf("command %#04x: %s", c.ID, name)}
	switch {
	case c.SGL.Keyed() && c.SGL.Length > 0:
		l.text += fmt.Sprintf(", %s at STag %#08x", wording.Bytes(c.SGL.Length), c.SGL.Key)
		p.memory.add(0, c.SGL.Key, piece{to: c.SGL.Address, length: uint64(c.SGL.Length),
			what: fmt.Sprintf("data of command %#04x, %s", c.ID, name)})
	case c.SGL.Type == capsule.SGLOffset && c.SGL.Length > 0:
		l.text += fmt.Sprintf(", %s in the capsule", wording.Bytes(c.SGL.Length))
	}
	return l, fits
}

// named names a command, on a queue of which it may not be known what it is.
func (p *nvme) named(c *capsule.Command) string {
	if c.Opcode != capsule.OpFabrics && !p.sure {
		return fmt.Sprintf("opcode %#02x", uint8(c.Opcode))
	}
	name := c.Name(p.admin)
	switch {
	case p.admin || c.Opcode == capsule.OpFabrics:
	case c.Opcode == capsule.OpRead, c.Opcode == capsule.OpWrite:
		io := c.IO()
		name += blocks(io.Blocks, io.LBA) + fmt.Sprintf(", namespace %d", c.NSID)
	}
	return name
}

// probes reports whether a host asks for what a controller need not have.
func (p *nvme) probes(c *capsule.Command) bool {
	return p.admin && (c.Opcode == capsule.OpIdentify || c.Opcode == capsule.OpGetLogPage || c.Opcode == capsule.OpGetFeatures ||
		c.Opcode == capsule.OpSetFeatures || c.Opcode == capsule.OpAsyncEvent)
}

// completion reads a response capsule.
func (p *nvme) completion(m *Message) (line, int) {
	c, err := capsule.ParseCompletion(m.Data)
	if err != nil || m.Length != capsule.CompletionLen {
		return line{}, against
	}
	asked, known := p.asked.take(c.ID)
	said := c.Status.String()
	if known && !strings.HasPrefix(said, asked.name+":") {
		said = asked.name + ": " + said
	}
	l := line{text: fmt.Sprintf("completion %#04x%s%s", c.ID, wording.If(known, ", ", ": "), said)}
	probe := asked.probe || !known && p.admin // or it may be one
	if c.Status.Code() != capsule.Success && !probe {
		l.failure, l.advice = said, nvmeAdvice[c.Status.Code()]
	}
	if !known {
		return l, silent
	}
	l.answers = asked.n
	return l, agrees
}

var nvmeAdvice = map[capsule.Status]string{
	capsule.InvalidParameter:       "the target does not know the NQN, or the controller: compare nvme connect -n with the target's subsystem",
	capsule.InvalidHost:            "the subsystem does not let this host in: add its host NQN at the target",
	capsule.ControllerBusy:         "the target has no room for another controller now",
	capsule.AuthenticationRequired: "the target asks for DH-HMAC-CHAP: give the host its secret",
	capsule.InvalidNamespace:       "the namespace was removed, or its number is wrong: list those that there are",
	capsule.LBAOutOfRange:          "the namespace is smaller than the host takes it for: has it shrunk?",
	capsule.WriteProtected:         "the target exports the namespace read-only",
	capsule.CapacityExceeded:       "the target's storage is full",
	capsule.WriteFault:             "the target's storage has failed: look at its log",
	capsule.ReadError:              "the target's storage has failed: look at its log",
	capsule.InternalError:          "the target's log says why",
	capsule.InvalidSGLLength:       "host and target do not agree on how long the data is",
}
