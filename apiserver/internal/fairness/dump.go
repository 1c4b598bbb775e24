package fairness

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// Pages are the debug pages by name, in upstream's layout (Kubernetes docs, "API
// Priority and Fairness", debug endpoints).
var Pages = map[string]func(c *Controller, w io.Writer, details bool) error{
	"dump_priority_levels": (*Controller).dumpLevels,
	"dump_queues":          (*Controller).dumpQueues,
	"dump_requests":        (*Controller).dumpRequests,
}

// rows writes a table, a level's rows at a time while its lock is held.
func (c *Controller) rows(w io.Writer, head []string, of func(l *level) [][]any) error {
	out := tabwriter.NewWriter(w, 8, 0, 1, ' ', 0)
	fmt.Fprintln(out, strings.Join(head, ",\t")) // Flush returns errors
	for _, l := range c.table.Load().levels {
		l.mu.Lock()
		rows := of(l)
		l.mu.Unlock()
		for _, row := range rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = fmt.Sprint(cell)
			}
			fmt.Fprintln(out, strings.Join(cells, ",\t"))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write a page about fairness: %w", err)
	}
	return nil
}

func (c *Controller) dumpLevels(w io.Writer, _ bool) error {
	return c.rows(w, []string{
		"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
		"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests",
	}, func(l *level) [][]any {
		q := &l.queues
		return [][]any{{
			l.name, len(q.backlog), q.waiting == 0 && q.running == 0, false, q.waiting, q.running,
			l.counts.dispatched, l.counts.rejected, l.counts.timedOut, l.counts.cancelled,
		}}
	})
}

func (c *Controller) dumpQueues(w io.Writer, _ bool) error {
	return c.rows(w, []string{
		"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum",
		"TotalWorkSum",
	}, func(l *level) (out [][]any) {
		work := func(seatSeconds float64) string { return fmt.Sprintf("%.8fss", seatSeconds) }
		for i, q := range l.queues.all {
			if q == nil {
				q = &queue{} // not used yet
			}
			out = append(out, []any{
				l.name, i, q.length, q.running, q.runningSeats, work(q.served), q.waitingSeats, q.waitingSeats,
				work(typicalSeconds * float64(q.waitingSeats)),
			})
		}
		return out
	})
}

func (c *Controller) dumpRequests(w io.Writer, details bool) error {
	head := []string{
		"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
		"InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
	}
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
	}
	return c.rows(w, head, func(l *level) (out [][]any) {
		tickets := make([]*Ticket, 0, len(l.present))
		for t := range l.present {
			tickets = append(tickets, t)
		}
		slices.SortFunc(tickets, func(a, b *Ticket) int { return cmp.Or(a.arrived.Compare(b.arrived), a.place.behind-b.place.behind) })
		for _, t := range tickets {
			out = append(out, t.row(l, details))
		}
		return out
	})
}

// row prints a request; its level's lock is held.
func (t *Ticket) row(l *level, details bool) []any {
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
	queue, index, started := slices.Index(l.queues.all, t.place.queue), -1, t.place.started
	if t.place.queue == nil {
		queue = -1
	}
	if t.waiter != nil && !t.waiter.admitted {
		started = time.Time{}
		for w := t.waiter; w != nil; w = w.prev {
			index++
		}
	}
	row := []any{
		l.name, t.schema.name, queue, index, t.schema.distinguisher(t), stamp(t.arrived), t.place.seats, 0, time.Duration(0), stamp(started),
	}
	if details {
		i := t.info
		row = append(row, t.user.Username, i.Verb, i.Path, i.Namespace, i.Name, i.APIVersion, i.ResourceName, i.Subresource)
	}
	return row
}

// distinguisher is what distinguishes the request's flow from others of the schema.
func (s *schema) distinguisher(t *Ticket) string {
	switch s.by {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return t.user.Username
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return t.info.Namespace
	}
	return ""
}
