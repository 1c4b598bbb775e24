package queue

import "kctl/scheduler/framework"

// maxJournal bounds the events kept for pods in flight. A pod that was popped
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
func (j *eventLog) next() uint64 { return j.first + uint64(len(j.events)) }

func (j *eventLog) add(event framework.ClusterEvent) {
	if len(j.events) >= maxInFlightEvents {
		j.forget(j.first + maxInFlightEvents/2)
	}
	j.events = append(j.events, event)
}

// since returns the events from number on; complete is false if some of them
// were forgotten.
func (j *eventLog) since(number uint64) (events []framework.ClusterEvent, complete bool) {
	if number < j.first {
		return j.events, false
	}
	return j.events[number-j.first:], true
}

// forget drops the events before number.
func (j *eventLog) forget(number uint64) {
	if number <= j.first {
		return
	}
	count := min(number-j.first, uint64(len(j.events)))
	rest := copy(j.events, j.events[count:])
	clear(j.events[rest:])
	j.events = j.events[:rest]
	j.first = number
}
