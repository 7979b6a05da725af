package probe

import "time"

// DefaultGiveUp is how long a peer that answers nothing is asked.
const DefaultGiveUp = 12 * time.Second

// quiet reports whether the peer has been asked, and has left every question without an answer.
func (p *prober) quiet() bool {
	for _, q := range p.report.Questions {
		if q.Outcome != Silent {
			return false
		}
	}
	return len(p.report.Questions) > 0
}

// patience returns how long to wait for the next answer, and whether to ask at all. One
// silence tells that the others will be no different, so that they are not waited for
// as long, and after a while nothing more is asked.
func (p *prober) patience() (wait time.Duration, ask bool) {
	switch {
	case p.cfg.GiveUp >= 0 && p.endsLines():
		return p.cfg.Timeout / 10, true
	case p.cfg.GiveUp < 0 || len(p.report.Questions) > 0 && !p.quiet():
		return p.cfg.Timeout, true
	case len(p.report.Questions) == 0:
		return min(p.cfg.Timeout, p.cfg.GiveUp), true
	}
	wait = p.cfg.Timeout / 3
	return wait, time.Since(p.begun)+wait <= p.cfg.GiveUp
}

// endsLines reports whether the peer has answered every question, and each only when our FIN had ended it: what it
// waits for is the end of a line, and it does not come earlier for being waited for.
func (p *prober) endsLines() bool {
	for _, q := range p.report.Questions {
		if !q.late {
			return false
		}
	}
	return len(p.report.Questions) > 0
}

// putsOff reports whether questions that differ in details wait: a peer that has answered
// nothing is asked first whether it knows other frames.
func (p *prober) putsOff() bool { return p.quiet() && !p.late }

// askPutOff asks what was put off.
func (p *prober) askPutOff() error {
	if p.late = true; p.hearsOther() {
		return nil
	}
	if err := p.askRevisions(); err != nil {
		return err
	}
	return p.askSMBDirect()
}
