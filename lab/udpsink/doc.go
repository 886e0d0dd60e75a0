// Udpsink receives datagrams and does nothing with them. It counts them.
package main
