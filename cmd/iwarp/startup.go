package main

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// startupFlags choose the kind of MPA startup, beside --dialect, which each command
// has in its own way.
type startupFlags struct {
	MPARev *uint8    `name:"mpa-rev" enum:"0,1,2" placeholder:"N" help:"MPA revision to ask for (${enum}); short for its --dialect (default: 2)."`
	Kind   *mpa.Kind `name:"kind" placeholder:"KIND" help:"Kind of RNIC to be: permissive, non-permissive, rdmac (default: permissive)."`
	Peer   *string   `name:"peer" enum:"${presets}" placeholder:"NAME" help:"Offer what this peer needs (${enum}); other flags overrule it."`
}

// startupVars are the names that the help texts and enums of the flags have.
func startupVars() map[string]string {
	var dialects, presets []string
	for _, d := range mpa.Dialects() {
		dialects = append(dialects, dialectName(d))
	}
	for _, p := range iwarp.Presets() {
		presets = append(presets, p.Name)
	}
	return map[string]string{"dialects": strings.Join(dialects, ","), "presets": strings.Join(presets, ",")}
}

// dialectName is the dialect's name without blanks.
func dialectName(d mpa.Dialect) string {
	text, _ := d.MarshalText() // of a constant
	return string(text)
}

// kind is 0 where it is not given.
func (f *startupFlags) kind() mpa.Kind {
	if f.Kind == nil {
		return 0
	}
	return *f.Kind
}

// preset is nil where no peer is named.
func (f *startupFlags) preset() (*iwarp.Preset, error) {
	if f.Peer == nil {
		return nil, nil
	}
	p, err := iwarp.LookupPreset(*f.Peer)
	return &p, err
}

// dialect is what --dialect and --mpa-rev ask for, and 0 if neither is given. name
// may be empty.
func (f *startupFlags) dialect(name string) (d mpa.Dialect, err error) {
	if name != "" {
		if err := d.UnmarshalText([]byte(name)); err != nil {
			return 0, err
		}
	}
	if f.MPARev == nil {
		return d, nil
	}
	short, err := mpa.OfRevision(*f.MPARev)
	switch {
	case err != nil || d == 0:
		return short, err
	case d == short, d == mpa.DialectRtr && short == mpa.DialectRFC5044: // its revision, too
		return d, nil
	}
	return 0, fmt.Errorf("--mpa-rev and --dialect: %d and %s contradict each other", *f.MPARev, name)
}
