// Package lab measures weir side by side with others. It is a module of its own, so that what it needs for that never
// reaches users.
package lab
