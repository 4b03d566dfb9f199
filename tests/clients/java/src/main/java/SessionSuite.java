import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.Session;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;
import org.springframework.session.events.AbstractSessionEvent;

/** Spring Session, indexed: a hash a session, sets by name and by end, events of keys that end. */
final class SessionSuite {
  private static final String NAME = FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME;
  private final LettuceConnectionFactory factory =
      new LettuceConnectionFactory(new RedisStandaloneConfiguration(Report.HOST, Report.PORT));
  private final List<String> events = new CopyOnWriteArrayList<>();
  private final RedisIndexedSessionRepository mine;
  private final RedisIndexedSessionRepository theirs;

  private SessionSuite() {
    factory.afterPropertiesSet();
    factory.start();
    factory.getConnection().serverCommands().setConfig("notify-keyspace-events", "Egx");
    mine = open();
    theirs = open();
    mine.setApplicationEventPublisher(event -> {
      if (event instanceof AbstractSessionEvent each) {
        events.add(event.getClass().getSimpleName() + " " + each.getSessionId());
      }
    });
    RedisMessageListenerContainer container = new RedisMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.addMessageListener(mine, List.of(new ChannelTopic(mine.getSessionDeletedChannel()),
        new ChannelTopic(mine.getSessionExpiredChannel()),
        new PatternTopic(mine.getSessionCreatedChannelPrefix() + "*")));
    container.afterPropertiesSet();
    container.start();
  }

  private RedisIndexedSessionRepository open() {
    RedisTemplate<String, Object> template = new RedisTemplate<>();
    template.setKeySerializer(RedisSerializer.string());
    template.setHashKeySerializer(RedisSerializer.string());
    template.setConnectionFactory(factory);
    template.afterPropertiesSet();
    RedisIndexedSessionRepository repository = new RedisIndexedSessionRepository(template);
    repository.setCleanupCron("-"); // the suite does it
    repository.afterPropertiesSet();
    return repository;
  }

  private static <S extends Session> String create(FindByIndexNameSessionRepository<S> at,
      String user, Duration idle) {
    S session = at.createSession();
    session.setAttribute(NAME, user);
    session.setAttribute("cart", "book");
    session.setMaxInactiveInterval(idle);
    at.save(session);
    return session.getId();
  }

  private static <S extends Session> void change(FindByIndexNameSessionRepository<S> at, String id,
      String attribute, Object value) {
    S session = at.findById(id);
    session.setAttribute(attribute, value);
    at.save(session);
  }

  private void shared() {
    String id = create(mine, "ann", Duration.ofMinutes(5));
    Report.same(theirs.findById(id).getAttribute("cart"), "book");
    change(theirs, id, "cart", "two books");
    Report.same(mine.findById(id).getAttribute("cart"), "two books");
    change(theirs, id, "cart", null);
    Report.same(mine.findById(id).getAttributeNames(), java.util.Set.of(NAME));
  }

  private void byName() throws Exception {
    String first = create(mine, "bob", Duration.ofMinutes(5));
    String second = create(theirs, "bob", Duration.ofMinutes(5));
    Map<String, ?> found = mine.findByIndexNameAndIndexValue(NAME, "bob");
    Report.same(found.keySet(), java.util.Set.of(first, second));
    change(mine, second, NAME, "rob");
    Report.same(theirs.findByIndexNameAndIndexValue(NAME, "bob").keySet(), java.util.Set.of(first));
    theirs.deleteById(first);
    Report.same(mine.findByIndexNameAndIndexValue(NAME, "bob").isEmpty(), true);
    Report.until(() -> events.contains("SessionDeletedEvent " + first));
    Report.same(events.contains("SessionCreatedEvent " + second), true);
  }

  private void newName() {
    RedisIndexedSessionRepository.RedisSession session =
        mine.findById(create(mine, "cat", Duration.ofMinutes(5)));
    String before = session.getId();
    String after = session.changeSessionId();
    mine.save(session);
    Report.same(theirs.findById(before), null);
    Report.same(theirs.findById(after).getAttribute("cart"), "book");
  }

  private void ends() throws Exception {
    String id = create(mine, "dan", Duration.ofSeconds(1));
    Report.until(() -> mine.findById(id) == null);
    Report.until(() -> events.contains("SessionExpiredEvent " + id));
    Report.until(() -> theirs.findByIndexNameAndIndexValue(NAME, "dan").isEmpty());
    StringRedisTemplate keys = new StringRedisTemplate(factory);
    Report.same(keys.hasKey("spring:session:sessions:expires:" + id), false);
    mine.cleanUpExpiredSessions();
  }

  public static void main(String[] arguments) {
    SessionSuite suite = new SessionSuite();
    Report.check("a session of two processes", suite::shared);
    Report.check("sessions of a name", suite::byName);
    Report.check("another id", suite::newName);
    Report.check("a session that ends, with its event", suite::ends);
    Report.end();
  }
}
