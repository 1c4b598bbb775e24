// Package discover knows which resources an API server serves, under which
// names people speak of them, and in which version they are best asked for.
// What it learnt is kept in a file for a while, so that most commands start
// without asking.
//
// Package command calls it. It never reads or changes objects.
package discover
