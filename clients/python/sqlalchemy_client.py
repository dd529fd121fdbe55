"""SQLAlchemy: the life cycle of a model with psycopg, and of one with asyncpg."""

import asyncio
import uuid
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Optional

from sqlalchemy import (
    JSON, CheckConstraint, DateTime, ForeignKey, Identity, MetaData, Numeric, String, create_engine, func, inspect, select,
    text, update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    __table_args__ = (CheckConstraint("length(name) > 0", name="author_has_name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True, comment="as on the cover")
    born: Mapped[Optional[date]]
    active: Mapped[bool] = mapped_column(default=True)
    notes: Mapped[Optional[dict]] = mapped_column(JSON)
    made: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=func.now())
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan", order_by="Book.title")


class Book(Base):
    __tablename__ = "book"

    key: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    serial: Mapped[int] = mapped_column(Identity(start=100))
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id", ondelete="CASCADE"), index=True)
    title: Mapped[str]
    price: Mapped[Decimal] = mapped_column(Numeric(8, 2))
    cover: Mapped[Optional[bytes]]
    author: Mapped[Author] = relationship(back_populates="books")


def equal(what, found, expected):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def adding(session):
    ann = Author(name="Ann", born=date(1970, 1, 31), notes={"languages": ["de", None]})
    ann.books = [Book(title="Zebras", price=Decimal("12.50"), cover=b"\x00\xff"), Book(title="Apes", price=Decimal("8"))]
    session.add_all([ann, Author(name="Bob", active=False)])
    session.commit()
    session.expunge_all()


def querying(session):
    ann = session.scalars(select(Author).where(Author.name == "Ann")).one()
    equal("columns", (ann.born, ann.active, ann.notes), (date(1970, 1, 31), True, {"languages": ["de", None]}))
    assert abs(datetime.now(timezone.utc) - ann.made).total_seconds() < 3600, ann.made
    equal("a relationship", [book.title for book in ann.books], ["Apes", "Zebras"])
    equal("bytes and numbers", (ann.books[1].cover, ann.books[1].price), (b"\x00\xff", Decimal("12.50")))
    equal("an identity", {book.serial for book in ann.books}, {100, 101})
    totals = select(Author.name, func.count(Book.key), func.coalesce(func.sum(Book.price), 0))
    totals = totals.outerjoin(Book).group_by(Author.name).order_by(Author.name)
    equal("groups", session.execute(totals).all(), [("Ann", 2, Decimal("20.50")), ("Bob", 0, Decimal(0))])
    eager = select(Author).options(selectinload(Author.books)).order_by(Author.id).limit(10)
    equal("an eager relationship", [len(author.books) for author in session.scalars(eager)], [2, 0])
    language = select(Author.name).where(Author.notes["languages"][0].as_string() == "de")
    equal("a JSON path", session.scalars(language).all(), ["Ann"])
    equal("an anti-join", session.scalars(select(Author.name).where(~Author.books.any())).all(), ["Bob"])


def changing(session):
    bob = session.scalars(select(Author).filter_by(name="Bob")).one()
    bob.active = True
    bob.books.append(Book(title="Cats", price=Decimal("1.25")))
    session.commit()
    raised = update(Book).where(Book.price < 10).values(price=Book.price * 2).returning(Book.title)
    equal("UPDATE ... RETURNING", sorted(session.scalars(raised)), ["Apes", "Cats"])
    session.rollback()
    equal("after ROLLBACK", session.scalar(select(func.min(Book.price))), Decimal("1.25"))
    upsert = insert(Author).values(name="Bob", active=False)
    upsert = upsert.on_conflict_do_update(index_elements=[Author.name], set_={"active": upsert.excluded.active})
    session.execute(upsert)
    session.commit()
    equal("ON CONFLICT", session.scalar(select(Author.active).where(Author.name == "Bob")), False)
    with session.begin_nested():
        bob.name = "Robert"
    nested = session.begin_nested()
    bob.name = "Rob"
    session.flush()
    nested.rollback()
    session.commit()
    equal("after ROLLBACK TO", session.get(Author, bob.id).name, "Robert")


def mistakes(session):
    for wrong, code in ((Author(name="Ann"), "23505"), (Author(name=""), "23514"),
                        (Book(title="Nobody's", price=1, author_id=77), "23503"), (Book(price=1, author_id=1), "23502")):
        session.add(wrong)
        try:
            session.commit()
        except IntegrityError as error:
            equal("the code of an error", error.orig.sqlstate, code)
            session.rollback()
        else:
            raise AssertionError(f"expected {code}")


def conflicts(session, engine):
    """What the first session has been shown is no longer so when it commits."""
    ann = session.scalars(select(Author).where(Author.name == "Ann")).one()
    with Session(engine) as other:
        other.execute(update(Author).where(Author.name == "Ann").values(notes={"changed": True}))
        other.commit()
    try:
        ann.active = False
        session.commit()
    except DBAPIError as error:
        equal("the code of a conflict", error.orig.sqlstate, "40001")
        session.rollback()
    else:
        raise AssertionError("expected 40001")


def deleting(session):
    ann = session.scalars(select(Author).where(Author.name == "Ann")).one()
    ann.books.pop()
    session.commit()
    equal("an orphan", session.scalar(select(func.count()).select_from(Book)), 2)
    session.delete(ann)
    session.commit()
    equal("what is left", session.scalars(select(Book.title)).all(), ["Cats"])


def reflecting(engine):
    inspector = inspect(engine)
    equal("tables", sorted(inspector.get_table_names()), ["author", "book"])
    equal("views", inspector.get_view_names(), ["shelf"])
    columns = {column["name"]: column for column in inspector.get_columns("author")}
    equal("types", [str(columns[name]["type"]) for name in ("id", "name", "active", "made")],
          ["INTEGER", "VARCHAR(40)", "BOOLEAN", "TIMESTAMP"])
    equal("nullable", [columns[name]["nullable"] for name in ("id", "born")], [False, True])
    equal("a primary key", inspector.get_pk_constraint("book")["constrained_columns"], ["key"])
    foreign_key = inspector.get_foreign_keys("book")[0]
    equal("a foreign key", (foreign_key["constrained_columns"], foreign_key["referred_table"], foreign_key["options"]),
          (["author_id"], "author", {"ondelete": "CASCADE"}))
    indexes = [(index["name"], index["column_names"]) for index in inspector.get_indexes("book")]
    equal("indexes", indexes, [("ix_book_author_id", ["author_id"])])
    equal("unique constraints", inspector.get_unique_constraints("author")[0]["column_names"], ["name"])
    equal("checks", [check["name"] for check in inspector.get_check_constraints("author")], ["author_has_name"])
    equal("columns of a view", [column["name"] for column in inspector.get_columns("shelf")], ["name", "title"])
    metadata = MetaData()
    metadata.reflect(engine)
    equal("a reflected relationship", [str(key) for key in metadata.tables["book"].foreign_keys],
          ["ForeignKey('author.id')"])
    with engine.connect() as connection:
        rows = connection.execute(select(metadata.tables["book"].c.title)).all()
    equal("a reflected table", rows, [("Cats",)])


def life_cycle():
    engine = create_engine("postgresql+psycopg://", pool_size=2)
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)  # finds that all is there
    with Session(engine) as session:
        for step in (adding, querying, changing, mistakes):
            step(session)
            print(f"sqlalchemy: {step.__name__}")
        conflicts(session, engine)
        deleting(session)
        session.execute(text("CREATE VIEW shelf AS SELECT name, title FROM author JOIN book ON author.id = author_id"))
        session.commit()
    reflecting(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP VIEW shelf"))
    Base.metadata.drop_all(engine)
    equal("after drop_all", inspect(engine).get_table_names(), [])
    engine.dispose()
    print("sqlalchemy: conflicts, deleting, reflecting")


async def asynchronous_life_cycle():
    engine = create_async_engine("postgresql+asyncpg://")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with AsyncSession(engine, expire_on_commit=False) as session:
        session.add(Author(name="Cem", books=[Book(title="Dogs", price=Decimal("3.50"), cover=b"\x01")]))
        await session.commit()
        found = await session.scalars(select(Author).options(selectinload(Author.books)))
        equal("a relationship", [(author.name, author.books[0].price) for author in found], [("Cem", Decimal("3.50"))])
        try:
            session.add(Author(name="Cem"))
            await session.commit()
        except IntegrityError as error:
            equal("the code of an error", error.orig.sqlstate, "23505")
        else:
            raise AssertionError("expected 23505")
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.drop_all)
    await engine.dispose()
    print("sqlalchemy: asynchronously")


if __name__ == "__main__":
    life_cycle()
    asyncio.run(asynchronous_life_cycle())
