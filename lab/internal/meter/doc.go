// Package meter lets a program under test be measured: who runs it reads its address, and asks for the processor time
// that it has used by a line on its standard input. The end of that ends the program.
package meter
