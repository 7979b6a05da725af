package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/mpa"
)

// next is the version that this code becomes, or is: CHANGELOG.md begins with it, and a release's tag must be it.
const next = "v0.1.0"

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON: {version, go, revision, dialects: [NAME], peers: [NAME]}."`
}

// versionJSON is the same for programs.
type versionJSON struct {
	Version  string   `json:"version"`
	Go       string   `json:"go"`
	Revision string   `json:"revision"`
	Dialects []string `json:"dialects"`
	Peers    []string `json:"peers"`
}

// Run prints what the binary was built from, the MPA dialects that it speaks, and the
// peers that it has presets for.
func (c versionCmd) Run(std streams) error {
	info := built()
	if c.JSON {
		return report.WriteJSON(std.out, versionOf(info))
	}
	text := fmt.Sprintf("iwarp    %s\ngo       %s\nrevision %s\n",
		versionName(info), info.GoVersion, revision(info.Settings))
	for _, d := range mpa.Dialects() {
		text += fmt.Sprintf("dialect  %-10s %v\n", dialectName(d), d)
	}
	for _, p := range iwarp.Presets() {
		text += fmt.Sprintf("peer     %-10s %s\n", p.Name, p.Peer)
	}
	_, err := fmt.Fprint(folded(std.out), text)
	return err
}

// built is what the binary was built from. The version of one that was not built of a version of the module is
// "(devel)".
func built() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	info.Main.Version = cmp.Or(info.Main.Version, "(devel)")
	return info
}

// versionName is the version for people. Go calls a commit without a tag v0.0.0 or (devel), which says less than what it
// is on the way to.
func versionName(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		return v
	}
	return next + "-dev"
}

func versionOf(info *debug.BuildInfo) versionJSON {
	v := versionJSON{Version: versionName(info), Go: info.GoVersion, Revision: revision(info.Settings)}
	for _, d := range mpa.Dialects() {
		v.Dialects = append(v.Dialects, dialectName(d))
	}
	for _, p := range iwarp.Presets() {
		v.Peers = append(v.Peers, p.Name)
	}
	return v
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
