package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

type versionCmd struct{}

// Run prints what the binary was built from, and the MPA dialects that it speaks.
func (versionCmd) Run(std streams) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{Main: debug.Module{Version: "(unknown)"}}
	}
	text := fmt.Sprintf("iwarp    %s\ngo       %s\nrevision %s\n", info.Main.Version, info.GoVersion, revision(info.Settings))
	for _, d := range []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} {
		text += fmt.Sprintf("dialect  %v\n", d)
	}
	_, err := fmt.Fprint(std.out, text)
	return err
}

// revision returns the commit that the binary was built from.
func revision(settings []debug.BuildSetting) string {
	var parts []string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision", s.Key == "vcs.time":
			parts = append(parts, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			parts = append(parts, "modified")
		}
	}
	if len(parts) == 0 {
		return "(not recorded)"
	}
	return strings.Join(parts, " ")
}
