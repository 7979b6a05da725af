package iwarp

import "github.com/goiwarp/iwarp/internal/peers"

// presetOf returns the advice that the table of known peers has. It leaves out a limit
// that is only assumed.
func presetOf(p *peers.Peer) Preset {
	preset := Preset{
		Name: p.Name, Peer: p.Product,
		Initiate: p.Initiate, Accept: p.Accept, Dialects: p.Dialects, NoFallback: p.NoFallback, Nudge: p.Nudge, SendEarly: p.SendEarly,
		SMBDirect: p.SMBDirect,
	}
	if p.Knows("MaxPDLength") {
		preset.MaxPDLength = p.MaxPDLength
	}
	for _, r := range p.Reasons {
		preset.Reasons = append(preset.Reasons, Reason(r))
	}
	return preset
}
