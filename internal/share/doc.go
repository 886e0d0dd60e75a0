// Package share is the bound: it decides which ready source runs next, and for how long.
//
// The rule is surplus round robin in time. Ready sources stand in a ring. A visit gives a source Q of
// credit and serves it while it has any; what its callbacks really took is charged, so it may end in
// debt. A source in debt is passed over and stays in the ring. Where all are in debt, all are given the
// same multiple of Q at once, so the loop never waits while there is work. A source without work leaves:
// its credit is void, its debt stays.
//
// There are two tiers of the same rule. Lanes share the ring equally, and the sources of a lane share
// its part, so a lane of a thousand connections weighs as much as a lane of one socket.
//
// Q is the longest inelastic activity of the last turn, between MinShare and MaxShare. Inelastic is what
// the ring does not govern, one timer callback for example: a source may take as long as the application
// itself takes at a time. What the ring governs must never feed back into Q; a share that follows the
// longest turn grows with itself and never comes down. A round that timers cut into turns keeps the Q that
// it began with: otherwise those who come after the cut, always the same, would have more, or less.
//
// The package is pure: time is an argument, and nothing here reads a clock.
package share
