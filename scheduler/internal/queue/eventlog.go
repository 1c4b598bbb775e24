package queue

import "kctl/scheduler/framework"

// maxInFlightEvents bounds the events kept for pods in flight. A pod that was popped
// before the oldest event kept is taken to have missed a relevant one.
const maxInFlightEvents = 10000

// eventLog holds the events since the oldest pod in flight was popped. An event
// between a pod's pop and its failure would otherwise be missed: the attempt
// did not see it, and the pod was not yet waiting for it.
type eventLog struct {
	events []framework.ClusterEvent
	first  uint64 // number of events[0]
}

// next is the number that the next event will get.
func (l *eventLog) next() uint64 { return l.first + uint64(len(l.events)) }

func (l *eventLog) add(event framework.ClusterEvent) {
	if len(l.events) >= maxInFlightEvents {
		l.forget(l.first + maxInFlightEvents/2)
	}
	l.events = append(l.events, event)
}

// since returns the events from number on; complete is false if some of them
// were forgotten.
func (l *eventLog) since(number uint64) (events []framework.ClusterEvent, complete bool) {
	if number < l.first {
		return l.events, false
	}
	return l.events[number-l.first:], true
}

// forget drops the events before number.
func (l *eventLog) forget(number uint64) {
	if number <= l.first {
		return
	}
	count := min(number-l.first, uint64(len(l.events)))
	rest := copy(l.events, l.events[count:])
	clear(l.events[rest:])
	l.events = l.events[:rest]
	l.first = number
}
