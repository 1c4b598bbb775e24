package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kctl/apiserver/internal/storage"
)

// pageSize bounds the keys of one answer, so that reading a large collection
// holds neither etcd nor this process for long. If the values are so large that
// the answer exceeds what the connection carries, List asks for fewer.
const pageSize = 2000

// Get implements storage.Reader.
func (s *Store) Get(ctx context.Context, key string) (storage.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.client.Get(ctx, key)
	if err != nil {
		return storage.Object{}, wrapError("get", key, err)
	}
	if len(answer.Kvs) == 0 {
		return storage.Object{}, wrapError("get", key, storage.ErrNotFound)
	}
	object, err := s.values.object(ctx, answer.Kvs[0])
	if err != nil {
		object = unreadable("get", answer.Kvs[0], err)
	}
	return object, object.Unreadable
}

// List implements storage.Reader.
func (s *Store) List(ctx context.Context, prefix, after string,
	limit, revision int64) (objects []storage.Object, at, remaining int64, err error) {
	start := prefix
	if after != "" {
		start = after + "\x00"
	}
	end := clientv3.GetPrefixRangeEnd(prefix)
	at = revision
	most := int64(pageSize)
	for {
		page := most
		if left := limit - int64(len(objects)); limit > 0 && left < page {
			page = left
		}
		answer, err := s.page(ctx, start, end, page, at)
		if status.Code(err) == codes.ResourceExhausted && page > 1 {
			most = max(page/4, 1)
			continue
		}
		if err != nil {
			return nil, 0, 0, wrapError("list", prefix, err)
		}
		if at == 0 {
			at = answer.Header.Revision
		}
		for _, kv := range answer.Kvs {
			object, err := s.values.object(ctx, kv)
			if err != nil {
				object = unreadable("list", kv, err) // a corrupt one must not hide all the others
			}
			objects = append(objects, object)
		}
		remaining = answer.Count - int64(len(answer.Kvs))
		if !answer.More || len(answer.Kvs) == 0 || limit > 0 && int64(len(objects)) >= limit {
			return objects, at, remaining, nil
		}
		start = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

func (s *Store) page(ctx context.Context, start, end string, limit, revision int64) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.client.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(limit), clientv3.WithRev(revision))
}

// Revision implements storage.Reader. Calls that come while a request is in
// flight share the next one. While etcd does not answer, it is asked again for as long as
// the caller has said that it waits; who has said nothing gets the error.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	_, waits := ctx.Deadline()
	for {
		revision, err := s.revisions.current(ctx)
		switch {
		case err == nil:
			return revision, nil
		case !waits || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return 0, wrapError("revision of", "the store", err)
		}
	}
}

// missingKey never exists: reading it costs etcd the least.
const missingKey = "\x00kctl"

// askRevision is a linearizable read of a key that never exists.
func (s *Store) askRevision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := s.client.Get(ctx, missingKey, clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}
