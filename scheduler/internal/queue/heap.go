package queue

import "container/heap"

// itemHeap is a heap of items that know their index in it.
type itemHeap struct {
	items []*item
	less  func(a, b *item) bool
}

func (h *itemHeap) Len() int           { return len(h.items) }
func (h *itemHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *itemHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

// Push and Pop are for container/heap.
func (h *itemHeap) Push(x any) {
	it := x.(*item)
	it.index = len(h.items)
	h.items = append(h.items, it)
}

func (h *itemHeap) Pop() any {
	last := len(h.items) - 1
	it := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return it
}

func (h *itemHeap) add(it *item)    { heap.Push(h, it) }
func (h *itemHeap) remove(it *item) { heap.Remove(h, it.index) }
func (h *itemHeap) fix(it *item)    { heap.Fix(h, it.index) }

func (h *itemHeap) peek() *item {
	if len(h.items) == 0 {
		return nil
	}
	return h.items[0]
}

func (h *itemHeap) take() *item { return heap.Pop(h).(*item) }
