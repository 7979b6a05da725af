package report

import (
	"fmt"
	"strings"
)

// A Grid is a table that is printed row by row, as soon as there is one: each column has its room from the beginning.
type Grid []Column

// A Column is one of a Grid's.
type Column struct {
	Group, Head string // columns of one Group stand beside each other; it is printed above them
	Width       int
	Left        bool // its texts stand on the left
}

// Heading returns the two lines above the rows: the groups, and the heads.
func (g Grid) Heading() string {
	var groups strings.Builder
	heads := make([]string, len(g))
	for i := 0; i < len(g); {
		width, group := 0, g[i].Group
		for ; i < len(g) && g[i].Group == group; i++ {
			heads[i] = g[i].Head
			width += g[i].Width + 1
		}
		groups.WriteString(groupHead(group, width))
	}
	return strings.TrimRight(groups.String(), " ") + "\n" + g.Row(heads)
}

// groupHead is a group's name in the middle of a line as wide as its columns.
func groupHead(name string, width int) string {
	if name == "" {
		return strings.Repeat(" ", width)
	}
	room := max(0, width-2-len(name)-2)
	return "  " + strings.Repeat("-", room/2) + " " + name + " " + strings.Repeat("-", room-room/2)
}

// Row returns a line, with a cell for each column.
func (g Grid) Row(cells []string) string {
	var b strings.Builder
	for i, c := range g {
		if width := c.Width; c.Left {
			fmt.Fprintf(&b, " %-*s", width, cells[i])
		} else {
			fmt.Fprintf(&b, " %*s", width, cells[i])
		}
	}
	return b.String() + "\n"
}
