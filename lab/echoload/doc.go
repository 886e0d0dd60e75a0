// Echoload has connections send a message and wait until it has come back, again and again, as fast as that
// goes, on one processor. It answers each line on its standard input with the number of messages so far.
package main
