package semel_test

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// relay stands between client and node, and treats the reply to a request that has a word: it is
// cut off, held back, given twice, or exchanged for an error.
type relay struct {
	listener net.Listener
	address  func() string
	mu       sync.Mutex
	rules    []*rule
}

type rule struct {
	word   string
	key    string // or of any
	left   int    // requests
	cut    bool   // the connection ends instead of the reply
	twice  bool   // the reply comes two times
	answer string // what comes instead, and the node hears nothing of it
	open   chan struct{}
	met    chan struct{} // the node has replied
}

func (n *node) relay() *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	r := &relay{listener: listener, address: n.address}
	n.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(client)
		}
	}()
	return r
}

func (r *relay) through(o *redis.Options) { o.Addr = r.listener.Addr().String() }

func (r *relay) add(each *rule) *rule {
	each.word = strings.ToUpper(each.word)
	each.met = make(chan struct{}, 100)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, each)
	return each
}

func (r *relay) cut(word string, times int) *rule {
	return r.add(&rule{word: word, left: times, cut: true})
}

func (r *relay) twice(word string, times int) *rule {
	return r.add(&rule{word: word, left: times, twice: true})
}

func (r *relay) answer(word string, times int, answer string) *rule {
	return r.add(&rule{word: word, left: times, answer: answer})
}

// end has a rule count no more.
func (r *relay) end(each *rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	each.left = 0
}

// hold keeps replies back until the test closes open.
func (r *relay) hold(t *testing.T, word, key string, times int) *rule {
	held := r.add(&rule{word: word, key: key, left: times, open: make(chan struct{})})
	t.Cleanup(func() {
		select {
		case <-held.open:
		default:
			close(held.open)
		}
	})
	return held
}

func (r *relay) ruleFor(request []byte) *rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	request = bytes.ToUpper(request)
	for _, each := range r.rules {
		if each.left > 0 && bytes.Contains(request, []byte(each.word+"\r\n")) &&
			bytes.Contains(request, []byte(strings.ToUpper(each.key))) {
			each.left--
			return each
		}
	}
	return nil
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.address())
	if err != nil {
		return
	}
	defer server.Close()
	var mu sync.Mutex
	var current *rule
	go func() {
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			count, err := server.Read(buffer)
			if err != nil {
				return
			}
			mu.Lock()
			each := current
			current = nil
			mu.Unlock()
			reply := buffer[:count]
			if each != nil {
				each.met <- struct{}{}
				if each.cut {
					return
				}
				if each.open != nil {
					<-each.open
				}
				if each.twice {
					reply = append(bytes.Clone(reply), reply...)
				}
			}
			if _, err := client.Write(reply); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		count, err := client.Read(buffer)
		if err != nil {
			return
		}
		each := r.ruleFor(buffer[:count])
		if each != nil && each.answer != "" {
			if _, err := client.Write([]byte(each.answer)); err != nil {
				return
			}
			continue
		}
		mu.Lock()
		current = each
		mu.Unlock()
		if _, err := server.Write(buffer[:count]); err != nil {
			return
		}
	}
}
