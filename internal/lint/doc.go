// Package lint holds the house rules as tests; there is nothing here to import.
//
// A rule is a function from the parsed tree to findings, and its test runs it twice: on input that
// breaks the rule, which must give exactly the findings named, and on this module, which must give
// none. Files are parsed, not loaded, so that a rule sees the files of every platform on any of them.
//
// The tables to edit when the house grows are arrows (which package may import which), outside (who
// may import what from other modules) and allowedVars. `go test ./internal/lint -run TestAPI -update`
// rewrites docs/api.
package lint
