// Package collect takes away what pods leave behind on a node: containers and
// sandboxes that ended, their logs, and all that there is of pods that nobody
// knows any more.
//
// It goes round once a minute by itself; whoever ends a pod may have it go
// round at once. For pods that are still known it keeps, as upstream does, the
// newest dead instance of each container, so that its logs and its end can be
// asked for, and the newest sandbox.
//
// It never ends anything that runs, and does nothing before every source of
// pods has been heard: until then no pod is unknown.
package collect
