// Package systest is the contract of sys.Kernel and poll.Poller as tests: what every implementation
// must pass, written against Linux.
//
// A case uses loopback addresses and ports that the kernel chooses. It waits for what should come, as
// a real kernel may deliver a moment after Send has returned, and it never asserts a speed.
package systest

import (
	"slices"
	"testing"

	"github.com/weirnet/weir/internal/poll"
)

// Case is one assertion about a backend. It starts no subtests, so that it can run in a synctest bubble.
type Case struct {
	Name string
	Run  func(t *testing.T, b poll.Backend)
}

// Run runs each case as a subtest on a backend of its own.
func Run(t *testing.T, newBackend func(t *testing.T) poll.Backend) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, newBackend(t)) })
	}
}

// Cases is the whole suite, for callers that run it otherwise.
func Cases() []Case {
	var cases []Case
	for _, c := range slices.Concat(
		socketCases, bindCases, addressCases, connectCases, optionCases,
		receiveCases, sendCases, refusedCases, dropCases, broadcastCases,
		controlCases, sourceCases, segmentCases, reportCases, adoptCases, deviceCases, multicastCases,
		listenCases, queueCases, acceptCases, streamConnectCases, streamCases, endCases, streamReadinessCases,
		sendFileCases, streamOptionCases, unixCases, unixgramCases, filesCases,
		registrationCases, readinessCases, waitCases, wakeCases,
	) {
		cases = append(cases, Case{c.name, func(t *testing.T, b poll.Backend) { c.run(newRig(t, b)) }})
	}
	return cases
}

// assertion is a Case as this package writes it.
type assertion struct {
	name string
	run  func(r *rig)
}
