package audit

import (
	"encoding/json"
	"maps"
)

// truncatedKey marks an event whose objects were left out.
const truncatedKey = "audit.k8s.io/truncated"

// TruncateOptions bound the size of events and batches. They are upstream's.
type TruncateOptions struct {
	Enabled      bool
	MaxBatchSize int64
	MaxEventSize int64
}

// split divides events into batches that are small enough. An event that is too
// large loses its objects, and is dropped if it is still too large.
func (o TruncateOptions) split(events []*Event, drop func(*Event)) [][]*Event {
	if !o.Enabled {
		return [][]*Event{events}
	}
	var batches [][]*Event
	var batch []*Event
	var size int64
	for _, e := range events {
		length := sizeOf(e)
		if length > o.MaxEventSize {
			e = truncated(e)
			if length = sizeOf(e); length > o.MaxEventSize {
				drop(e)
				continue
			}
		}
		if len(batch) > 0 && size+length > o.MaxBatchSize {
			batches, batch, size = append(batches, batch), nil, 0
		}
		batch, size = append(batch, e), size+length
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

func sizeOf(e *Event) int64 {
	text, err := json.Marshal(e)
	if err != nil { // its objects are already JSON
		return 0
	}
	return int64(len(text))
}

func truncated(e *Event) *Event {
	small := *e
	small.RequestObject, small.ResponseObject = nil, nil
	small.Annotations = maps.Clone(e.Annotations)
	if small.Annotations == nil {
		small.Annotations = map[string]string{}
	}
	small.Annotations[truncatedKey] = "true"
	return &small
}
