package queue

import "kctl/scheduler/framework"

// maxJournal bounds the events kept for pods in flight. A pod that was popped
// before the oldest event kept is taken to have missed a relevant one.
const maxJournal = 10000

// journal holds the events since the oldest pod in flight was popped. An event
// between a pod's pop and its failure would otherwise be missed: the attempt
// did not see it, and the pod was not yet waiting for it.
type journal struct {
	events []framework.Event
	first  uint64 // number of events[0]
}

// next is the number that the next event will get.
func (j *journal) next() uint64 { return j.first + uint64(len(j.events)) }

func (j *journal) add(event framework.Event) {
	if len(j.events) >= maxJournal {
		j.forget(j.first + maxJournal/2)
	}
	j.events = append(j.events, event)
}

// since returns the events from number on; complete is false if some of them
// were forgotten.
func (j *journal) since(number uint64) (events []framework.Event, complete bool) {
	if number < j.first {
		return j.events, false
	}
	return j.events[number-j.first:], true
}

// forget drops the events before number.
func (j *journal) forget(number uint64) {
	if number <= j.first {
		return
	}
	count := min(number-j.first, uint64(len(j.events)))
	rest := copy(j.events, j.events[count:])
	clear(j.events[rest:])
	j.events = j.events[:rest]
	j.first = number
}
