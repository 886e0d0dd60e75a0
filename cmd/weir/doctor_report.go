package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// state is what a check has found.
type state string

const (
	stateOn       state = "on"
	stateDegraded state = "degraded"
	stateOff      state = "off"
	stateNote     state = "note"
)

// check is one thing that was looked at. Its JSON is documented: fields are added, not changed.
type check struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

func on(name, reason string) check               { return check{name, stateOn, reason, ""} }
func degraded(name, reason, remedy string) check { return check{name, stateDegraded, reason, remedy} }
func off(name, reason, remedy string) check      { return check{name, stateOff, reason, remedy} }
func note(name, reason, remedy string) check     { return check{name, stateNote, reason, remedy} }

// diagnosis is all that weir doctor says. Its JSON is documented: fields are added, not changed.
type diagnosis struct {
	OK      bool    `json:"ok"`
	Version string  `json:"version"`
	Kernel  string  `json:"kernel"`
	Checks  []check `json:"checks"`
}

// degraded are the names of the checks that are.
func (d diagnosis) degraded() (names []string) {
	for _, c := range d.Checks {
		if c.State == stateDegraded {
			names = append(names, c.Name)
		}
	}
	return names
}

func (d diagnosis) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // it is for people, too
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

func (d diagnosis) printTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s\n\n", d.Version, d.Kernel)
	width := 0
	for _, c := range d.Checks {
		width = max(width, len(c.Name))
	}
	const columns, gap = 100, 2
	indent := gap + width + gap + len(stateDegraded) + gap
	for _, c := range d.Checks {
		fmt.Fprintf(&b, "%*s%-*s%-*s", gap, "", width+gap, c.Name, len(stateDegraded)+gap, c.State)
		text := wrapTo(c.Reason, columns-indent)
		if c.Remedy != "" {
			text += "\n" + wrapTo("remedy: "+c.Remedy, columns-indent)
		}
		b.WriteString(strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", indent)))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
