package cache

import (
	"context"
	"iter"
	"strings"

	"k8s.io/utils/third_party/forked/golang/btree"

	"kctl/apiserver/internal/storage"
)

// Page asks for a part of a collection.
type Page struct {
	Selection
	After string // the last key of the page before, "" for the first
	Limit int64  // 0 for all
}

// List is a part of a collection at one revision.
type List struct {
	Entries  []*Entry
	Revision int64
	More     bool
	// Remaining counts what follows this page; -1 if the page has selectors.
	Remaining int64
}

// Get returns the entry of key as the cache has it now.
func (c *Cache) Get(key string) (*Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries.Get(&Entry{Key: key})
}

// Measure returns how many keys begin with prefix and how many bytes their values
// have, reading no further than to the key at which either reaches its bound.
func (c *Cache) Measure(prefix string, mostKeys, mostBytes int) (keys, bytes int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	c.entries.AscendGreaterOrEqual(&Entry{Key: prefix}, func(e *Entry) bool {
		if keys >= mostKeys || bytes >= mostBytes || !strings.HasPrefix(e.Key, prefix) {
			return false
		}
		keys++
		bytes += len(e.Value)
		return true
	})
	return keys, bytes
}

// List reads a page of the cache's present state.
func (c *Cache) List(p Page) List {
	c.mu.RLock()
	entries, revision := c.snapshot(), c.Revision()
	c.mu.RUnlock()
	return c.page(p, entries, revision)
}

// snapshot returns the present entries as a tree that nothing changes any more, so that it
// is read without a lock. mu is held, if only for reading.
func (c *Cache) snapshot() *btree.BTree[*Entry] {
	c.snapshotting.Lock()
	defer c.snapshotting.Unlock()
	if c.unchanged == nil {
		c.unchanged = c.entries.Clone() // copies no node: changes do, once each
	}
	return c.unchanged
}

// candidates are those of entries that the page may hold, in order; the selectors have still
// to be applied.
func (c *Cache) candidates(entries *btree.BTree[*Entry], p Page) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if key, ok := c.onlyKey(p.Selection); ok {
			if e, found := entries.Get(&Entry{Key: key}); found && e.Key > p.After {
				yield(e)
			}
			return
		}
		start := p.Prefix
		if p.After != "" {
			start = p.After + "\x00"
		}
		entries.AscendGreaterOrEqual(&Entry{Key: start}, func(e *Entry) bool {
			return strings.HasPrefix(e.Key, p.Prefix) && yield(e)
		})
	}
}

// page selects from entries up to the limit.
func (c *Cache) page(p Page, entries *btree.BTree[*Entry], revision int64) List {
	list, fetched := List{Revision: revision}, int64(0)
	all := p.everything()
	if all && p.Limit == 0 && p.Prefix == c.options.Prefix {
		list.Entries = make([]*Entry, 0, entries.Len())
	}
	for e := range c.candidates(entries, p) {
		full := p.Limit > 0 && int64(len(list.Entries)) == p.Limit
		if full && all {
			list.More, list.Remaining = true, countFrom(entries, e, p.Prefix)
			break
		}
		fetched++
		if !c.matches(p.Selection, e) {
			continue
		}
		if full {
			list.More, list.Remaining = true, -1
			break
		}
		list.Entries = append(list.Entries, e)
	}
	c.memory.add(Listed{Lists: 1, Fetched: fetched, Returned: int64(len(list.Entries))})
	return list
}

// countFrom counts the entries of prefix from first on. It looks at none of them but the one behind the
// last, which would take several times as long: they are all over the memory.
func countFrom(entries *btree.BTree[*Entry], first *Entry, prefix string) (n int64) {
	var end *Entry // nil if they are the last of all
	entries.AscendGreaterOrEqual(&Entry{Key: prefix + afterAllKeys}, func(e *Entry) bool {
		end = e
		return false
	})
	entries.AscendGreaterOrEqual(first, func(e *Entry) bool {
		if e == end {
			return false
		}
		n++
		return true
	})
	return n
}

// ListAt reads a page as of revision: from the cache if nothing has changed
// since, otherwise from etcd. It returns storage.ErrCompacted if etcd has
// dropped that revision.
func (c *Cache) ListAt(ctx context.Context, p Page, revision int64) (List, error) {
	c.mu.RLock()
	if c.lastChangeRevision <= revision && revision <= c.Revision() {
		entries := c.snapshot()
		c.mu.RUnlock()
		if err := c.checkNotCompacted(ctx, revision); err != nil {
			return List{}, err
		}
		return c.page(p, entries, revision), nil
	}
	c.mu.RUnlock()
	return c.ListStored(ctx, p, revision)
}

// afterAllKeys sorts after every key: UTF-8 has no such byte.
const afterAllKeys = "\xff"

// checkNotCompacted fails if etcd has dropped the revision: a continue token has to expire whether
// anything has changed or not (upstream's conformance test of chunking waits for
// that). The range it reads is empty.
func (c *Cache) checkNotCompacted(ctx context.Context, revision int64) error {
	if revision == c.Revision() {
		return nil
	}
	_, _, _, err := c.options.Storage.List(ctx, c.options.Prefix, c.options.Prefix+afterAllKeys, 1, revision)
	return err
}

// GetStored reads one object from etcd; its errors are those of storage.Reader.
func (c *Cache) GetStored(ctx context.Context, key string) (*Entry, error) {
	object, err := c.options.Storage.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	one := []storage.Object{object}
	c.normalize(one)
	return c.newEntry(one[0]), nil
}

// storedPageSize is how many objects a read with selectors asks etcd for at once.
const storedPageSize = 500

// ListStored reads a page from etcd as of revision, or of now (0). It returns
// storage.ErrUnreadable if one of the page's objects can't be read.
func (c *Cache) ListStored(ctx context.Context, p Page, revision int64) (List, error) {
	list := List{Revision: revision}
	counted := Listed{Lists: 1}
	defer func() {
		counted.Returned = int64(len(list.Entries))
		c.stored.add(counted)
	}()
	all := p.everything()
	after := p.After
	for {
		ask := p.Limit
		if !all {
			ask = storedPageSize
		}
		objects, at, remaining, err := c.options.Storage.List(ctx, p.Prefix, after, ask, list.Revision)
		if err == nil {
			err = storage.Unreadable(objects)
		}
		if err != nil {
			return List{}, err
		}
		counted.Fetched += int64(len(objects))
		c.normalize(objects)
		list.Revision = at
		for i, object := range objects {
			after = object.Key
			counted.Evaluated++
			e := c.newEntry(object)
			if all || c.matches(p.Selection, e) {
				list.Entries = append(list.Entries, e)
			}
			if full := p.Limit > 0 && int64(len(list.Entries)) == p.Limit; full {
				left := remaining + int64(len(objects)-i-1)
				list.More, list.Remaining = left > 0, left
				if !all {
					list.Remaining = -1
				}
				return list, nil
			}
		}
		if remaining == 0 || len(objects) == 0 {
			return list, nil
		}
	}
}
